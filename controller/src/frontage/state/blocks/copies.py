# SPDX-License-Identifier: Apache-2.0
"""``copies.p4``: the tunnel and the next hop of copies of first flights, which are rewritten in egress."""

from __future__ import annotations

from collections.abc import Sequence

from frontage.config.network import Port
from frontage.config.routing import RoutingTable
from frontage.config.sites import OwnSite, Site
from frontage.p4.entries import Action, Key, State
from frontage.state.blocks import encapsulation

REMOTE = "outer.remote"
NEXT_HOP = "copies.next_hop"
TABLES = (REMOTE, NEXT_HOP)


def entries(own: OwnSite, other_sites: Sequence[Site], ports: Sequence[Port], routing: RoutingTable) -> State:
    state = encapsulation.site_tunnels(own, other_sites, REMOTE)
    macs = {port.name: port.mac for port in ports}
    for site in other_sites:
        hop = routing.lookup(site.vtep)
        if hop is not None and hop.mac is not None:
            state[Key(NEXT_HOP, (site.id,))] = Action("rewrite_macs", (macs[hop.port], hop.mac))
    return state
