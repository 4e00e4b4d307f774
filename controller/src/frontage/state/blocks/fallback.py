"""``fallback.p4``: the life of the entries of TCP's connection table."""

from __future__ import annotations

from frontage.config import Config
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation

TIMEOUT = "fallback.timeout"
TABLES = (TIMEOUT,)

_TICK_US = 1 << 20


def ticks(seconds: int) -> int:
    """A time on the switch's clock, whose tick is 2^20 us; not shorter than asked for."""
    return -(-seconds * 1_000_000 // _TICK_US)


def entries(config: Config, allocation: Allocation) -> State:
    return {Key(TIMEOUT, ()): Action("set_timeout", (ticks(config.fallback.idle_timeout),))}
