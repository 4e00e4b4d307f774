"""``encapsulation.p4``: the outer headers of the tunnels to sites, dispatchers and replicas."""

from __future__ import annotations

from frontage.config import Config
from frontage.config.sites import OwnSite, TunnelKind
from frontage.fields import IPAddress
from frontage.limits import DISPATCHER_SLOTS
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation
from frontage.state.blocks.tunnel import replicas

REMOTE = "encapsulation.remote"
TABLES = (REMOTE,)

SITE, DISPATCHER, REPLICA = 1, 2, 3
"""Kinds of remotes."""

_KINDS = {TunnelKind.VXLAN: 1, TunnelKind.GRE: 2}


def entries(config: Config, allocation: Allocation) -> State:
    own = config.site
    if own is None:
        return {}
    state = sites(config, REMOTE)
    if config.dispatchers:
        for slot in range(DISPATCHER_SLOTS):
            dispatcher = config.dispatchers[slot % len(config.dispatchers)]
            state[Key(REMOTE, (DISPATCHER, slot))] = through(own, dispatcher.address)
    for server in replicas(config):
        state[Key(REMOTE, (REPLICA, server.sid))] = through(own, server.tunnel_end)
    return state


def sites(config: Config, table: str) -> State:
    """The tunnels to the other sites, as entries of ``table``."""
    if config.site is None:
        return {}
    return {Key(table, (SITE, site.id)): through(config.site, site.vtep, site.tunnel) for site in config.other_sites}


def through(own: OwnSite, to: IPAddress, kind: TunnelKind = TunnelKind.VXLAN) -> Action:
    source = own.end(to.version)
    assert source is not None, "checked: the switch has an end of this IP version"
    return Action(f"set_tunnel{to.version}", (_KINDS[kind], int(source), int(to)))
