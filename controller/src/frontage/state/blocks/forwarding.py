# SPDX-License-Identifier: Apache-2.0
"""``forwarding.p4``: longest-prefix match and next hops. A host on a link of the switch is a route to a single address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from frontage.config.network import Neighbor, Route
from frontage.fields import IPAddress, IPNetwork, Mac
from frontage.learned import Learned, NextHops
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Hop
from frontage.state.blocks.groups import MEMBERS, installed_groups, usable

IPV4_LPM = "forwarding.ipv4_lpm"
IPV6_LPM = "forwarding.ipv6_lpm"
NEXT_HOP = "forwarding.next_hop"
TABLES = (NEXT_HOP, IPV4_LPM, IPV6_LPM)


UNRESOLVED = 0xFFFF
"""The id of a next hop that is never installed. Packets to unresolved hosts drop there, instead of by a shorter prefix."""


def entries(
    routes: Iterable[Route], on_link: Iterable[Neighbor], hops: Mapping[tuple[str, Mac], Hop], ids: Mapping[Hop, int]
) -> State:
    """Return the entries of configured routes. ``hops`` are by port name and Ethernet address, ``ids`` the ids of the next hops."""

    def to(port: str, mac: Mac | None) -> Action:
        return Action("set_next_hop", (UNRESOLVED if mac is None else ids[hops[port, mac]],))

    state: State = {Key(NEXT_HOP, (number,)): Action("forward", (hop.port, hop.src, hop.dst)) for hop, number in ids.items()}
    for route in routes:
        state[route_key(route)] = to(route.port, route.mac)
    for neighbor in on_link:
        state[host_key(neighbor.address)] = to(neighbor.port, neighbor.mac)
    return state


def learned_entries(learned: Learned, groups: Mapping[NextHops, int], ids: Mapping[IPAddress, int]) -> State:
    """Return the entries of learned routes. ``ids`` are the ids of the resolved next hops, ``groups`` the numbers of groups."""
    actions: dict[NextHops, Action] = {}
    for next_hops in set(learned.routes.values()):
        if (group := groups.get(next_hops)) is not None:
            actions[next_hops] = Action("set_group", (group,))
        else:
            actions[next_hops] = Action("set_next_hop", (*usable(next_hops, learned, ids), UNRESOLVED)[:1])
    return {prefix_key(prefix): actions[next_hops] for prefix, next_hops in learned.routes.items()}


def unconfirmed_entries(learned: Learned, installed: Mapping[Key, Action], ids: Mapping[IPAddress, int]) -> State:
    """Return the installed entries of routes that routers may still announce, with their groups.

    Those are entries that lead to hosts on links. They include static routes that have just been removed.
    """
    if learned.is_complete:
        return {}
    numbers = set(ids.values())
    groups = {number: members for number, members in installed_groups(installed).items() if numbers.issuperset(members)}
    gone = {prefix_key(prefix) for prefix in learned.withdrawn}
    state: State = {}
    for key, action in installed.items():
        if key.table not in (IPV4_LPM, IPV6_LPM) or key in gone:
            continue
        if action.name == "set_next_hop" and action.params[0] in numbers:
            state[key] = action
        elif action.name == "set_group" and (members := groups.get(action.params[0])) is not None:
            state[key] = action
            state[Key(MEMBERS, action.params)] = Action("set_next_hop", members)
    return state


def installed_hops(state: Mapping[Key, Action]) -> dict[Key, tuple[int, Mac]]:
    """Return the port and the Ethernet address of the next hop of every installed route."""
    forward = {key.match[0]: action.params for key, action in state.items() if key.table == NEXT_HOP and action.name == "forward"}
    found: dict[Key, tuple[int, Mac]] = {}
    for key, action in state.items():
        if key.table in (IPV4_LPM, IPV6_LPM) and action.name == "set_next_hop" and (hop := forward.get(action.params[0])):
            found[key] = hop[0], Mac(hop[2])
    return found


def host_key(address: IPAddress) -> Key:
    """Return the key of the route to a single address."""
    return Key(_table(address.version), ((int(address), address.max_prefixlen),))


def route_key(route: Route) -> Key:
    """Return the key of a route."""
    return prefix_key(route.prefix)


def prefix_key(prefix: IPNetwork) -> Key:
    """Return the key of the route to a prefix."""
    return Key(_table(prefix.version), ((int(prefix.network_address), prefix.prefixlen),))


def _table(version: int) -> str:
    return IPV4_LPM if version == 4 else IPV6_LPM
