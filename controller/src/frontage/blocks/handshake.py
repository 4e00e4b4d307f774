"""``handshake.p4``: the life of the entries of QUIC's handshake table."""

from __future__ import annotations

from frontage.allocation import Allocation
from frontage.blocks.fallback import ticks
from frontage.config import Config
from frontage.state import Action, Key, State

TIMEOUT = "handshake.timeout"
TABLES = (TIMEOUT,)


def entries(config: Config, allocation: Allocation) -> State:
    return {Key(TIMEOUT, ()): Action("set_timeout", (ticks(config.handshake.timeout),))}
