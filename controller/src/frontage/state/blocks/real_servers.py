"""``real_servers.p4``: as whom each real server's port may send, and the addresses that nothing from outside reaches."""

from __future__ import annotations

from frontage.config import Config
from frontage.config.real_servers import senders
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation

SENDER = "real_servers.sender"
SOURCE4 = "real_servers.source4"
SOURCE6 = "real_servers.source6"
DESTINATION4 = "real_servers.destination4"
DESTINATION6 = "real_servers.destination6"
SENDERS = (SENDER, SOURCE4, SOURCE6)
DESTINATIONS = (DESTINATION4, DESTINATION6)
TABLES = (*SENDERS, *DESTINATIONS)


def entries(config: Config, allocation: Allocation) -> State:
    state: State = {}
    ports = {port.name: port.id for port in config.ports}
    for real_server in config.real_servers:
        for address in real_server.addresses:
            source, destination = (SOURCE4, DESTINATION4) if address.version == 4 else (SOURCE6, DESTINATION6)
            state[Key(source, (int(address),))] = Action("set_real_server_port", (ports[real_server.port],))
            state[Key(destination, (int(address),))] = Action("external_source")
    for (port, sid), from_real_server in senders(config.real_servers, config.servers).items():
        state[Key(SENDER, (ports[port], sid))] = Action("allow_sender", (int(from_real_server),))
    return state
