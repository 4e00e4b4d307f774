# SPDX-License-Identifier: Apache-2.0
"""``retrieve.p4``: opening the echoed TCP cookie with every installed key, by the rounds of the seal in reverse order."""

from __future__ import annotations

from collections.abc import Iterable

from frontage.cookie import CookieKey
from frontage.p4.entries import Action, Key, State
from frontage.state.blocks.masking import ROUND_ACTIONS

ROUNDS = tuple(f"open.round{i}" for i in range(4))
TABLES = ROUNDS


def entries(keys: Iterable[CookieKey]) -> State:
    state: State = {}
    for key in keys:
        for i, table in enumerate(ROUNDS):
            sealing_round = 3 - i
            mask = 0x7F if sealing_round % 2 else 0xFF
            for index, byte in enumerate(key.tcp_tables[sealing_round]):
                state[Key(table, (key.epoch, index))] = Action(ROUND_ACTIONS[i], (byte & mask,))
    return state
