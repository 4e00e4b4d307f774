"""``unseal.p4``: opening what QUIC packets carry with every installed key; the seal's rounds, backwards."""

from __future__ import annotations

from frontage.config import Config
from frontage.config.vips import Protocol
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation

ROUNDS = tuple(tuple(f"round{i}.byte{j}" for j in range(4)) for i in range(4))
TABLES = tuple(table for byte_tables in ROUNDS for table in byte_tables)


def entries(config: Config, allocation: Allocation) -> State:
    state: State = {}
    if not any(vip.protocol is Protocol.UDP for vip in config.vips) and not any(port.ranks for port in config.ports):
        return state  # nothing to open
    for key in config.cookie_keys:
        for i, byte_tables in enumerate(ROUNDS):
            sealing_round = 3 - i
            mask = 0xFFFFFFF if sealing_round % 2 else 0xFFFFFFFF
            for table, words in zip(byte_tables, key.ip6_tables[sealing_round], strict=True):
                for byte, word in enumerate(words):
                    state[Key(table, (key.epoch, byte))] = Action("xor_output", (word & mask,))
    return state
