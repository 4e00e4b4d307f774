# SPDX-License-Identifier: Apache-2.0
"""``handshake.p4``: the idle timeout of the QUIC handshake table."""

from __future__ import annotations

from frontage.p4.entries import Action, Key, State
from frontage.state.blocks.fallback import ticks

TIMEOUT = "handshake.timeout"
TABLES = (TIMEOUT,)


def entries(timeout: int) -> State:
    return {Key(TIMEOUT, ()): Action("set_timeout", (ticks(timeout),))}
