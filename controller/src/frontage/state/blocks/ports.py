"""``ports.p4``: which side of the switch a packet came from."""

from __future__ import annotations

from frontage.config import Config
from frontage.config.network import Role
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation

PORT = "ports.port"
TABLES = (PORT,)

ROLES = {Role.CLIENT: 1, Role.SERVER: 2, Role.SITE: 3, Role.REAL_SERVER: 4}


def entries(config: Config, allocation: Allocation) -> State:
    return {Key(PORT, (port.id,)): Action("set_port", (ROLES[port.role], port.mac)) for port in config.ports}
