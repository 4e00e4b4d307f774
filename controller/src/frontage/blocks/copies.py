"""``copies.p4``: what a copy of a first flight needs in egress on its way to another site: the tunnel, and the next hop."""

from __future__ import annotations

from frontage.allocation import Allocation
from frontage.blocks import encapsulation
from frontage.config import Config
from frontage.state import Action, Key, State
from frontage.ways import Ways

REMOTE = "outer.remote"
NEXT_HOP = "copies.next_hop"
TABLES = (REMOTE, NEXT_HOP)


def entries(config: Config, allocation: Allocation) -> State:
    state = encapsulation.sites(config, REMOTE)
    ways = Ways(config)
    macs = {port.name: port.mac for port in config.ports}
    for site in config.other_sites:
        way = ways.to(site.vtep)
        if way is not None:
            state[Key(NEXT_HOP, (site.id,))] = Action("rewrite_macs", (macs[way.port], way.mac))
    return state
