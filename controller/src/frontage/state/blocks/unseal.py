# SPDX-License-Identifier: Apache-2.0
"""``unseal.p4``: opening the cookies of QUIC packets with every installed key, by the rounds of the seal in reverse order."""

from __future__ import annotations

from collections.abc import Iterable

from frontage.cookie import CookieKey
from frontage.p4.entries import Action, Key, State

ROUNDS = tuple(tuple(f"round{i}.byte{j}" for j in range(4)) for i in range(4))
TABLES = tuple(table for byte_tables in ROUNDS for table in byte_tables)


def entries(keys: Iterable[CookieKey]) -> State:
    state: State = {}
    for key in keys:
        for i, byte_tables in enumerate(ROUNDS):
            sealing_round = 3 - i
            mask = 0xFFFFFFF if sealing_round % 2 else 0xFFFFFFFF
            for number, (table, words) in enumerate(zip(byte_tables, key.ip6_tables[sealing_round], strict=True)):
                for byte, word in enumerate(words):
                    state[Key(table, (key.epoch, byte))] = Action(f"set_output{number}", (word & mask,))
    return state
