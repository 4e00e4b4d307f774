"""``scheduler.p4``: how the queue of each port is scheduled, and from which depth on packets are marked."""

from __future__ import annotations

from frontage.config import Config
from frontage.config.network import Discipline, Port, Scheduler
from frontage.cookie import IP6_SIGNAL, RPT_UNIT_US
from frontage.limits import MAX_DEPTH
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation

PORT = "scheduler.port"
TABLES = (PORT,)

_FIFO = Scheduler(kind=Discipline.FIFO)


def rank(microseconds: int) -> int:
    """The rank of packets whose flow needs so long."""
    return IP6_SIGNAL.encode(microseconds // RPT_UNIT_US)


def entries(config: Config, allocation: Allocation) -> State:
    return {Key(PORT, (port.id,)): _use(port) for port in config.ports if port.scheduler or port.ecn_threshold}


def _use(port: Port) -> Action:
    scheduler = port.scheduler or _FIFO
    marks_from = port.ecn_threshold or MAX_DEPTH  # no queue is that long
    default = rank(scheduler.default_rank)
    if scheduler.kind is Discipline.AIFO:
        capacity = scheduler.capacity or 0
        params = (default, scheduler.window, scheduler.sample, capacity, scheduler.report_every - 1)
        return Action("use_aifo", (marks_from, *params))
    if scheduler.kind is Discipline.SP_PIFO:
        return Action("use_sp_pifo", (marks_from, default))
    return Action("use_fifo", (marks_from,))
