# SPDX-License-Identifier: Apache-2.0
"""``maglev.p4``: consistent hashing."""

from __future__ import annotations

from collections.abc import Iterable

from frontage.p4.entries import Action, Key, State
from frontage.state.owners import slot_sids
from frontage.state.resolved import ResolvedVip

MAGLEV = "maglev.maglev"
TABLES = (MAGLEV,)


def entries(vips: Iterable[ResolvedVip]) -> State:
    return {
        Key(MAGLEV, (vip.id, slot)): Action("select_server", (sid,))
        for vip in vips
        for slot, sid in enumerate(slot_sids(vip.hashed, vip.room))
    }
