# SPDX-License-Identifier: Apache-2.0
"""The tables of the cookie's cipher, looked up in the order of the P4 program."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontage.cookie import CookieKey
from frontage.p4.entries import Key, State
from frontage.state.blocks import masking, retrieve
from frontage.state.desired import STAGES, TABLES

KEYS = (CookieKey(6, bytes(range(16))), CookieKey(7, bytes(range(100, 132))))


SEAL = masking.entries(KEYS, ())
OPEN = retrieve.entries(KEYS)


def cipher(state: State, rounds: tuple[str, ...], a: int, b: int, epoch: int, tweak: bytes) -> tuple[int, int]:
    """``cookie.p4``."""
    for i, table in enumerate(rounds):
        source, target = (b, a) if i % 2 == 0 else (a, b)
        target ^= state[Key(table, (epoch, source ^ tweak[i]))].params[0]
        a, b = (target, b) if i % 2 == 0 else (a, target)
    return a, b


@given(st.sampled_from(KEYS), st.integers(0, 4095), st.binary(min_size=4, max_size=4))
def test_program_seals_and_opens_like_the_specification(key: CookieKey, sid: int, tweak: bytes) -> None:
    # masking.p4
    left, right = cipher(SEAL, masking.ROUNDS, sid >> 4, (sid & 15) << 3, key.epoch, tweak)
    code = key.epoch << 15 | left << 7 | right
    assert code == key.seal_tcp(sid, tweak)
    # retrieve.p4
    right, left = cipher(OPEN, retrieve.ROUNDS, code & 0x7F, code >> 7 & 0xFF, code >> 15, tweak[::-1])
    assert right & 7 == 0
    assert left << 4 | right >> 3 == sid


def test_newest_key_seals() -> None:
    action = SEAL[Key(masking.ACTIVE_KEY, ())]
    assert action.params == (1, 7)


@pytest.mark.parametrize(("rounds", "state"), [(masking.ROUNDS, SEAL), (retrieve.ROUNDS, OPEN)])
def test_entry_of_round_2_implies_one_of_round_0(rounds: tuple[str, ...], state: State) -> None:
    """Both rounds tell `cookie.p4` that a key is installed. Tables are written in the order of `TABLES` and deleted in reverse."""
    order = [TABLES.index(table) for table in rounds]
    assert order == sorted(order)
    for table in rounds:
        assert {key.match for key in state if key.table == table} == {(key.epoch, index) for key in KEYS for index in range(256)}


def test_key_seals_once_all_rounds_are_written() -> None:
    stage_of = {table: stage for stage, tables in enumerate(STAGES) for table in tables}
    assert all(stage_of[table] < stage_of[masking.ACTIVE_KEY] for table in masking.ROUNDS)
