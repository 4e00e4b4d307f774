"""``masking.p4``: sealing the static cookie with the newest key."""

from __future__ import annotations

from frontage.allocation import Allocation
from frontage.config import Config
from frontage.state import Action, Key, State

ROUNDS = tuple(f"seal.round{i}" for i in range(4))
ACTIVE_KEY = "masking.active_key"
TABLES = (*ROUNDS, ACTIVE_KEY)


def entries(config: Config, allocation: Allocation) -> State:
    state: State = {}
    keys = config.cookie_keys
    for key in keys:
        for i, table in enumerate(ROUNDS):
            mask = 0x7F if i % 2 else 0xFF
            for index, byte in enumerate(key.tcp_tables[i]):
                state[Key(table, (key.epoch, index))] = Action("mix", (byte & mask,))
    state[Key(ACTIVE_KEY, ())] = Action("set_active_key", (keys[-1].epoch, keys[-1].id & 0xFFFF))
    return state
