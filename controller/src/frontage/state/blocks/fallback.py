# SPDX-License-Identifier: Apache-2.0
"""``fallback.p4``: the idle timeout of the TCP connection table."""

from __future__ import annotations

from frontage.p4.entries import Action, Key, State

TIMEOUT = "fallback.timeout"
TABLES = (TIMEOUT,)

_TICK_US = 1 << 20


def ticks(seconds: int) -> int:
    """Return a time in ticks of the switch's clock (2^20 us), rounded up."""
    return -(-seconds * 1_000_000 // _TICK_US)


def entries(idle_timeout: int) -> State:
    return {Key(TIMEOUT, ()): Action("set_timeout", (ticks(idle_timeout),))}
