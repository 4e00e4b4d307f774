# SPDX-License-Identifier: Apache-2.0
"""``ports.p4``: the role of each port."""

from __future__ import annotations

from collections.abc import Iterable

from frontage.config.network import Port, Role
from frontage.config.samples import Samples
from frontage.p4.entries import Action, Key, State

PORT = "ports.port"
TABLES = (PORT,)

ROLES = {Role.CLIENT: 1, Role.SERVER: 2, Role.SITE: 3, Role.REAL_SERVER: 4}


def entries(ports: Iterable[Port], samples: Samples | None = None) -> State:
    return {Key(PORT, (port.id,)): _action(port, samples) for port in ports}


def _action(port: Port, samples: Samples | None) -> Action:
    parameters = ROLES[port.role], port.mac
    if samples is None or (samples.ports and port.name not in samples.ports):
        return Action("set_port", parameters)
    return Action("set_sampled_port", (*parameters, samples.threshold, int(samples.postcards is not None)))
