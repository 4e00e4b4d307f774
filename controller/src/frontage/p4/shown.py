# SPDX-License-Identifier: Apache-2.0
"""Entries as text for messages, without parameters that contain secrets of cookie keys."""

from __future__ import annotations

import re

from frontage.p4.entries import Action, Key

_SECRET = re.compile(r"(seal|open)\.round\d|round\d\.byte\d|syn_defence\.secrets")
"""The tables whose actions contain key material (`state/blocks`: masking, retrieve, unseal, syn_defence)."""


def is_secret(table: str) -> bool:
    """Return whether the parameters of a table's actions, or the cells of a register, are key material."""
    return _SECRET.fullmatch(table) is not None


def shown(key: Key, action: Action | None) -> str:
    """Return an entry as text."""
    text = f"{key.table}{list(key.match)}"
    if action is None:
        return text
    return f"{text} -> {action.name}{'[secret]' if is_secret(key.table) else list(action.params)}"
