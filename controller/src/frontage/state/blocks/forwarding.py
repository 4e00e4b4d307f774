"""``forwarding.p4``: longest prefixes, and the next hops that they lead to. A neighbor, or a real server, is a route to its one
address."""

from __future__ import annotations

from frontage.config import Config
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation, hops

IPV4_LPM = "forwarding.ipv4_lpm"
IPV6_LPM = "forwarding.ipv6_lpm"
NEXT_HOP = "forwarding.next_hop"
TABLES = (NEXT_HOP, IPV4_LPM, IPV6_LPM)


def entries(config: Config, allocation: Allocation) -> State:
    state: State = {
        Key(NEXT_HOP, (number,)): Action("forward", (hop.port, hop.src, hop.dst)) for hop, number in allocation.next_hops.items()
    }
    by_way = {way: allocation.next_hops[hop] for way, hop in hops(config).items()}
    for route in config.routes:
        table = IPV4_LPM if route.prefix.version == 4 else IPV6_LPM
        match = (int(route.prefix.network_address), route.prefix.prefixlen)
        state[Key(table, (match,))] = Action("set_next_hop", (by_way[route.port, route.mac],))
    for neighbor in config.on_link_hosts:
        table = IPV4_LPM if neighbor.address.version == 4 else IPV6_LPM
        match = (int(neighbor.address), neighbor.address.max_prefixlen)
        state[Key(table, (match,))] = Action("set_next_hop", (by_way[neighbor.port, neighbor.mac],))
    return state
