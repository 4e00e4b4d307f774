# SPDX-License-Identifier: Apache-2.0
"""``aifo.p4``: the queue length up to which AIFO admits a packet, by how many ranks of the window are smaller than its rank."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from frontage.config.network import Discipline, Port
from frontage.p4.entries import Action, Key, State

LIMIT = "aifo.limit"
TABLES = (LIMIT,)


def limit(capacity: int, window: int, k: float, smaller: int) -> int:
    """Return the largest c for which ``smaller / window <= 1 / (1 - k) * (capacity - c) / capacity``.

    The result is at least ``k * capacity``, so it includes the paper's other condition (docs/aifo.md). It is exact for the
    decimal value of k.
    """
    return int(capacity * (1 - Fraction(smaller, window) * (1 - Fraction(str(k)))))


def entries(ports: Iterable[Port]) -> State:
    state: State = {}
    for port in ports:
        scheduler = port.scheduler
        if scheduler is not None and scheduler.kind is Discipline.AIFO and scheduler.capacity is not None:
            for smaller in range(scheduler.window + 1):
                value = limit(scheduler.capacity, scheduler.window, scheduler.k, smaller)
                state[Key(LIMIT, (port.id, smaller))] = Action("set_limit", (value,))
    return state
