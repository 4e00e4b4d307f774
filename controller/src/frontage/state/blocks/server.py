"""``server.p4``: the way from SID to the server's own address."""

from __future__ import annotations

from frontage.config import Config
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation

SERVER4 = "server.server4"
SERVER6 = "server.server6"
TABLES = (SERVER4, SERVER6)


def entries(config: Config, allocation: Allocation) -> State:
    state: State = {}
    for server in config.servers:
        table, action = (SERVER4, "to_server4") if server.address.version == 4 else (SERVER6, "to_server6")
        state[Key(table, (server.sid,))] = Action(action, (int(server.address), server.port))
    return state
