"""``copies.p4``: what a copy of a first flight needs in egress on its way to another site: the tunnel, and the next hop."""

from __future__ import annotations

from frontage.config import Config
from frontage.config.routing import RoutingTable
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation
from frontage.state.blocks import encapsulation

REMOTE = "outer.remote"
NEXT_HOP = "copies.next_hop"
TABLES = (REMOTE, NEXT_HOP)


def entries(config: Config, allocation: Allocation) -> State:
    state = encapsulation.sites(config, REMOTE)
    routing = RoutingTable(config.routes, config.on_link_hosts)
    macs = {port.name: port.mac for port in config.ports}
    for site in config.other_sites:
        hop = routing.lookup(site.vtep)
        if hop is not None:
            state[Key(NEXT_HOP, (site.id,))] = Action("rewrite_macs", (macs[hop.port], hop.mac))
    return state
