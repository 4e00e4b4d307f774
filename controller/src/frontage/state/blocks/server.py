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
        action = "to_server4" if server.address.version == 4 else "to_server6"
        state[key(server)] = Action(action, (int(server.address), server.port))
    return state


def key(server: Server) -> Key:
    """Return the key of the server's entry, whose direct counter counts the packets to the server."""
    return Key(SERVER4 if server.address.version == 4 else SERVER6, (server.sid,))
