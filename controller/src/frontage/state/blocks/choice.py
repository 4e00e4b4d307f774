# SPDX-License-Identifier: Apache-2.0
"""``choice.p4``: the active and draining servers of each VIP."""

from __future__ import annotations

from collections.abc import Iterable

from frontage.p4.entries import Action, Key, State
from frontage.state.resolved import ResolvedVip

MEMBER = "choice.member"
TABLES = (MEMBER,)


def entries(vips: Iterable[ResolvedVip]) -> State:
    return {
        Key(MEMBER, (vip.id, server.config.sid)): Action("set_member", (server.slot, int(server.config.active)))
        for vip in vips
        for server in vip.servers
    }
