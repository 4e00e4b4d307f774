# SPDX-License-Identifier: Apache-2.0
"""``server.p4``: the address of the server with each SID."""

from __future__ import annotations

from collections.abc import Iterable

from frontage.config.vips import Server
from frontage.p4.entries import Action, Key, State

SERVER4 = "server.server4"
SERVER6 = "server.server6"
TABLES = (SERVER4, SERVER6)


def entries(servers: Iterable[Server]) -> State:
    state: State = {}
    for server in servers:
        version, remote = server.address.version, server.remote
        at = (int(server.address), server.port)
        if remote is None:
            state[key(server)] = Action(f"to_server{version}", at)
        else:
            max_mss = remote.max_segment(server.destination.version, version)
            state[key(server)] = Action(f"to_remote_server{version}", (*at, max_mss))
    return state


def key(server: Server) -> Key:
    """Return the key of the server's entry, whose direct counter counts the packets to the server."""
    return Key(SERVER4 if server.address.version == 4 else SERVER6, (server.sid,))
