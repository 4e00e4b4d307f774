# SPDX-License-Identifier: Apache-2.0
"""The numbers of groups of next hops."""

from __future__ import annotations

from collections.abc import Mapping

from frontage import limits
from frontage.fields import IPAddress
from frontage.learned import Learned, NextHops
from frontage.p4.entries import Action, Key
from frontage.state.blocks.groups import installed_groups, usable


def number_groups(
    learned: Learned, ids: Mapping[IPAddress, int], known: Mapping[NextHops, int], installed: Mapping[Key, Action]
) -> dict[NextHops, int]:
    """Return the number of every group of several next hops.

    Groups keep the numbers of ``known``, or else that of an installed group with the same usable next hops. A group for which the
    program has no room is missing: its routes use one next hop.
    """
    wanted = [hops for hops in dict.fromkeys(learned.routes.values()) if len(hops) > 1]
    result = {hops: known[hops] for hops in wanted if hops in known}
    taken = set(result.values())
    old = installed_groups(installed)
    by_members: dict[tuple[int, ...], list[int]] = {}
    for number, members in old.items():
        if number not in taken:
            by_members.setdefault(members, []).append(number)
    room = limits.MAX_GROUP_MEMBERS - sum(map(len, result))
    fresh = [number for number in range(limits.MAX_GROUPS - 1, 0, -1) if number not in taken and number not in old]
    for hops in wanted:
        if hops in result:
            continue
        same = by_members.get(usable(hops, learned, ids), [])
        room -= len(hops)
        if room >= 0 and (same or fresh):
            result[hops] = (same or fresh).pop()
    return result
