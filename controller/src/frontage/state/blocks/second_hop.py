# SPDX-License-Identifier: Apache-2.0
"""``second_hop.p4``: the servers that may have connections of a slot of Maglev's table besides its owner."""

from __future__ import annotations

from collections.abc import Iterable

from frontage.p4.entries import Action, Key, State
from frontage.state.owners import MAX_OTHERS
from frontage.state.resolved import ResolvedVip

OTHERS = "second_hop.others"
TABLES = (OTHERS,)


def entries(vips: Iterable[ResolvedVip]) -> State:
    return {
        Key(OTHERS, (vip.id, slot)): Action("set_others", (len(sids), *sids, *(0 for _ in range(MAX_OTHERS - len(sids)))))
        for vip in vips
        for slot, sids in vip.others.items()
    }
