"""``handshake.p4``: the life of the entries of QUIC's handshake table."""

from __future__ import annotations

from frontage.config import Config
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation
from frontage.state.blocks.fallback import ticks

TIMEOUT = "handshake.timeout"
TABLES = (TIMEOUT,)


def entries(config: Config, allocation: Allocation) -> State:
    return {Key(TIMEOUT, ()): Action("set_timeout", (ticks(config.handshake.timeout),))}
