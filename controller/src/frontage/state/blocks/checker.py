# SPDX-License-Identifier: Apache-2.0
"""``checker.p4``: the addresses and the port of the checker."""

from __future__ import annotations

from collections.abc import Sequence

from frontage.config.health import Checker
from frontage.config.network import Port
from frontage.p4.entries import Action, Key, State

SOURCE4 = "checker.source4"
SOURCE6 = "checker.source6"
DESTINATION4 = "checker.destination4"
DESTINATION6 = "checker.destination6"
TABLES = (SOURCE4, SOURCE6, DESTINATION4, DESTINATION6)


def entries(checker: Checker | None, ports: Sequence[Port]) -> State:
    """Return the entries; none without a checker."""
    state: State = {}
    if checker is not None:
        port = next(port.id for port in ports if port.name == checker.port)
        for address in checker.addresses:
            source, destination = (SOURCE4, DESTINATION4) if address.version == 4 else (SOURCE6, DESTINATION6)
            state[Key(source, (port, int(address)))] = Action("is_check")
            state[Key(destination, (int(address),))] = Action("is_check")
    return state
