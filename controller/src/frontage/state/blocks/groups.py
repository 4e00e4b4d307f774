# SPDX-License-Identifier: Apache-2.0
"""``groups.p4``: groups of next hops with equal cost.

Groups without a usable next hop are left out, so the switch drops their packets.
"""

from __future__ import annotations

from collections.abc import Mapping

from frontage.fields import IPAddress
from frontage.learned import Learned, NextHops
from frontage.p4.entries import Action, Key, State

MEMBERS = "next_hop_group.members"
TABLES = (MEMBERS,)


def entries(groups: Mapping[NextHops, int], learned: Learned, ids: Mapping[IPAddress, int]) -> State:
    """Return the entries. ``groups`` are the numbers of the groups, ``ids`` the ids of the resolved next hops."""
    state: State = {}
    for next_hops, number in groups.items():
        if members := usable(next_hops, learned, ids):
            state[Key(MEMBERS, (number,))] = Action("set_next_hop", members)
    return state


def usable(next_hops: NextHops, learned: Learned, ids: Mapping[IPAddress, int]) -> tuple[int, ...]:
    """Return the ids of those next hops that are resolved, and whose session has not ended."""
    return tuple(ids[address] for address in next_hops if address in ids and address not in learned.down)


def installed_groups(state: Mapping[Key, Action]) -> dict[int, tuple[int, ...]]:
    """Return the ids of the next hops of each installed group, by number."""
    found: dict[int, tuple[int, ...]] = {}
    for key, action in state.items():
        if key.table == MEMBERS and isinstance(number := key.match[0], int):
            found[number] = action.params
    return found
