# SPDX-License-Identifier: Apache-2.0
"""``scheduler.p4``: the queueing discipline and the ECN threshold of each port."""

from __future__ import annotations

from collections.abc import Iterable

from frontage.config.network import Discipline, Port, Scheduler
from frontage.cookie import IP6_SIGNAL, RPT_UNIT_US
from frontage.limits import MAX_DEPTH
from frontage.p4.entries import Action, Key, State

PORT = "scheduler.port"
TABLES = (PORT,)

_FIFO = Scheduler(kind=Discipline.FIFO)


def rank(microseconds: int) -> int:
    """Return the rank of packets whose flow has this remaining processing time."""
    return IP6_SIGNAL.encode(microseconds // RPT_UNIT_US)


def entries(ports: Iterable[Port]) -> State:
    return {Key(PORT, (port.id,)): _discipline(port) for port in ports if port.scheduler or port.ecn_threshold}


def _discipline(port: Port) -> Action:
    scheduler = port.scheduler or _FIFO
    marks_from = port.ecn_threshold or MAX_DEPTH  # longer than any queue
    default = rank(scheduler.default_rank)
    if scheduler.kind is Discipline.AIFO:
        capacity = scheduler.capacity or 0
        params = (default, scheduler.window, scheduler.sample, capacity, scheduler.report_every - 1)
        return Action("use_aifo", (marks_from, *params))
    if scheduler.kind is Discipline.SP_PIFO:
        return Action("use_sp_pifo", (marks_from, default))
    return Action("use_fifo", (marks_from,))
