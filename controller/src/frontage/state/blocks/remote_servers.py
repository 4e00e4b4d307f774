# SPDX-License-Identifier: Apache-2.0
"""``remote_servers.p4``: the tunnels by which remote servers may send, and the servers behind each endpoint."""

from __future__ import annotations

from collections.abc import Iterable

from frontage.config.remote_servers import Answers
from frontage.config.vips import Server
from frontage.fields import IPAddress
from frontage.p4.entries import Action, Key, State
from frontage.state.blocks import encapsulation

SOURCE = "remote_servers.source"
TUNNEL = "server_tunnel.tunnel"
TABLES = (SOURCE, TUNNEL)


def entries(servers: Iterable[Server]) -> State:
    state: State = {}
    remote = [(server, server.remote) for server in servers if server.remote is not None]
    sets = source_sets(server for server, _ in remote)
    for server, tunnel in remote:
        max_mss = tunnel.max_segment(server.destination.version, server.address.version)
        key = Key(SOURCE, (server.sid,))
        if tunnel.answers is Answers.ROUTED:
            state[key] = Action("return_routed", (max_mss,))
        else:
            source_set = sets[server.destination]
            state[key] = Action("return_by_tunnel", (source_set, max_mss))
            state[Key(TUNNEL, (source_set, encapsulation.number(tunnel), tunnel.tunnel_id))] = Action("NoAction")
    return state


def source_sets(servers: Iterable[Server]) -> dict[IPAddress, int]:
    """Return a source set for each endpoint from which remote servers answer."""
    return encapsulation.source_sets(
        (server.destination, server.sid)
        for server in servers
        if server.remote is not None and server.remote.answers is Answers.TUNNEL
    )
