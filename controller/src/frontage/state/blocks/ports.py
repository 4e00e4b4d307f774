# SPDX-License-Identifier: Apache-2.0
"""``ports.p4``: the role of each port."""

from __future__ import annotations

from collections.abc import Iterable

from frontage.config.network import Port, Role
from frontage.p4.entries import Action, Key, State

PORT = "ports.port"
TABLES = (PORT,)

ROLES = {Role.CLIENT: 1, Role.SERVER: 2, Role.SITE: 3, Role.REAL_SERVER: 4}


def entries(ports: Iterable[Port]) -> State:
    return {Key(PORT, (port.id,)): Action("set_port", (ROLES[port.role], port.mac)) for port in ports}
