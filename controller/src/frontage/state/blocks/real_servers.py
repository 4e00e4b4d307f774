# SPDX-License-Identifier: Apache-2.0
"""``real_servers.p4``: the servers on whose behalf each port may send, and the addresses of real servers.

Packets from outside to these addresses are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence

from frontage.config.network import Port
from frontage.config.real_servers import RealServer, senders
from frontage.config.vips import Server
from frontage.p4.entries import Action, Key, State

SENDER = "real_servers.sender"
SOURCE4 = "real_servers.source4"
SOURCE6 = "real_servers.source6"
DESTINATION4 = "real_servers.destination4"
DESTINATION6 = "real_servers.destination6"
SENDERS = (SENDER, SOURCE4, SOURCE6)
DESTINATIONS = (DESTINATION4, DESTINATION6)
TABLES = (*SENDERS, *DESTINATIONS)


def entries(real_servers: Sequence[RealServer], servers: Sequence[Server], ports: Sequence[Port]) -> State:
    state: State = {}
    port_ids = {port.name: port.id for port in ports}
    for real_server in real_servers:
        for address in real_server.addresses:
            source, destination = (SOURCE4, DESTINATION4) if address.version == 4 else (SOURCE6, DESTINATION6)
            state[Key(source, (int(address),))] = Action("set_real_server_port", (port_ids[real_server.port],))
            state[Key(destination, (int(address),))] = Action("external_source")
    for (port, sid), from_real_server in senders(real_servers, servers).items():
        state[Key(SENDER, (port_ids[port], sid))] = Action("allow_sender", (int(from_real_server),))
    return state
