# SPDX-License-Identifier: Apache-2.0
"""Cells of registers, as entries of a state.

A program may use a register instead of an exact table whose actions have one parameter (`in_registers`). An entry is then the cell
whose index is the concatenation of the match fields. A cell without an entry is zero, so the state omits entries of zero.
"""

from __future__ import annotations

from collections.abc import Mapping

from frontage.p4.entries import Action, Key, State, exact

_BYTE = 8
"""Bits of each match field except the first."""


def cell(register: str, index: int, word: int) -> tuple[Key, Action]:
    return Key(register, (index,)), Action("write", (word,))


def in_registers(state: Mapping[Key, Action], registers: Mapping[str, object]) -> State:
    """Return the state with the entries that these registers store as cells."""
    result: State = {}
    for key, action in state.items():
        if key.table not in registers:
            result[key] = action
        elif (word := action.params[0]) != 0:
            index = 0
            for value in exact(key.match):
                index = index << _BYTE | value
            cell_key, cell_action = cell(key.table, index, word)
            result[cell_key] = cell_action
    return result
