"""``retrieve.p4``: opening the echoed cookie with every installed key; the seal's rounds, backwards."""

from __future__ import annotations

from frontage.config import Config
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation

ROUNDS = tuple(f"open.round{i}" for i in range(4))
TABLES = ROUNDS


def entries(config: Config, allocation: Allocation) -> State:
    state: State = {}
    for key in config.cookie_keys:
        for i, table in enumerate(ROUNDS):
            sealing_round = 3 - i
            mask = 0x7F if sealing_round % 2 else 0xFF
            for index, byte in enumerate(key.tcp_tables[sealing_round]):
                state[Key(table, (key.epoch, index))] = Action("set_output", (byte & mask,))
    return state
