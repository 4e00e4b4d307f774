# SPDX-License-Identifier: Apache-2.0
"""``encapsulation.p4``: the outer headers of the tunnels to sites, dispatchers and replicas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from frontage.config.sites import Dispatcher, OwnSite, Site, TunnelKind
from frontage.config.vips import Server
from frontage.fields import IPAddress
from frontage.limits import DISPATCHER_SLOTS
from frontage.p4.entries import Action, Key, State

REMOTE = "encapsulation.remote"
TABLES = (REMOTE,)

SITE, DISPATCHER, REPLICA = 1, 2, 3
"""Kinds of remote endpoints."""

_KINDS = {TunnelKind.VXLAN: 1, TunnelKind.GRE: 2}


def entries(own: OwnSite, other_sites: Iterable[Site], dispatchers: Sequence[Dispatcher], replicas: Iterable[Server]) -> State:
    state = site_tunnels(own, other_sites, REMOTE)
    if dispatchers:
        for slot in range(DISPATCHER_SLOTS):
            dispatcher = dispatchers[slot % len(dispatchers)]
            state[Key(REMOTE, (DISPATCHER, slot))] = _tunnel(own, dispatcher.address)
    for server in replicas:
        state[Key(REMOTE, (REPLICA, server.sid))] = _tunnel(own, server.tunnel_endpoint)
    return state


def site_tunnels(own: OwnSite, other_sites: Iterable[Site], table: str) -> State:
    """Return the tunnels to the other sites as entries of ``table``."""
    return {Key(table, (SITE, site.id)): _tunnel(own, site.vtep, site.tunnel) for site in other_sites}


def _tunnel(own: OwnSite, to: IPAddress, kind: TunnelKind = TunnelKind.VXLAN) -> Action:
    source = own.vtep_of(to.version)
    assert source is not None, "config.checks.sites rejects endpoints of other IP versions"
    return Action(f"set_tunnel{to.version}", (_KINDS[kind], int(source), int(to)))
