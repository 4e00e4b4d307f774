"""``aifo.p4``: with how many packets waiting AIFO still admits one, by how many ranks of the window are smaller than its own."""

from __future__ import annotations

from fractions import Fraction

from frontage.config import Config
from frontage.config.network import Discipline
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation

LIMIT = "aifo.limit"
TABLES = (LIMIT,)


def limit(capacity: int, window: int, k: float, smaller: int) -> int:
    """The largest c for which ``smaller / window <= 1 / (1 - k) * (capacity - c) / capacity``. It is at least ``k * capacity``, so
    that the paper's other condition is in it (docs/aifo.md). Exact, for k as it is written in decimals."""
    return int(capacity * (1 - Fraction(smaller, window) * (1 - Fraction(str(k)))))


def entries(config: Config, allocation: Allocation) -> State:
    state: State = {}
    for port in config.ports:
        scheduler = port.scheduler
        if scheduler is not None and scheduler.kind is Discipline.AIFO and scheduler.capacity is not None:
            for smaller in range(scheduler.window + 1):
                value = limit(scheduler.capacity, scheduler.window, scheduler.k, smaller)
                state[Key(LIMIT, (port.id, smaller))] = Action("set_limit", (value,))
    return state
