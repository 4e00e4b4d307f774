# SPDX-License-Identifier: Apache-2.0
"""``forwarding.p4``: longest-prefix match and next hops. A neighbor, or a real server, is a route to a single address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from frontage.config.network import Neighbor, Route
from frontage.fields import Mac
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Hop

IPV4_LPM = "forwarding.ipv4_lpm"
IPV6_LPM = "forwarding.ipv6_lpm"
NEXT_HOP = "forwarding.next_hop"
TABLES = (NEXT_HOP, IPV4_LPM, IPV6_LPM)


def entries(
    routes: Iterable[Route], on_link: Iterable[Neighbor], hops: Mapping[tuple[str, Mac], Hop], ids: Mapping[Hop, int]
) -> State:
    """Return the entries. ``hops`` are by port name and Ethernet address, ``ids`` the ids of the next hops."""
    state: State = {Key(NEXT_HOP, (number,)): Action("forward", (hop.port, hop.src, hop.dst)) for hop, number in ids.items()}
    for route in routes:
        table = IPV4_LPM if route.prefix.version == 4 else IPV6_LPM
        match = (int(route.prefix.network_address), route.prefix.prefixlen)
        state[Key(table, (match,))] = Action("set_next_hop", (ids[hops[route.port, route.mac]],))
    for neighbor in on_link:
        table = IPV4_LPM if neighbor.address.version == 4 else IPV6_LPM
        match = (int(neighbor.address), neighbor.address.max_prefixlen)
        state[Key(table, (match,))] = Action("set_next_hop", (ids[hops[neighbor.port, neighbor.mac]],))
    return state
