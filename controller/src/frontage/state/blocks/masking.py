# SPDX-License-Identifier: Apache-2.0
"""``masking.p4``: sealing TCP's static cookie with the newest key, and the cookie addresses of QUIC servers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from frontage.cookie import CookieKey, Ip6Cookie
from frontage.p4.entries import Action, Key, State
from frontage.state.resolved import ResolvedVip

ROUNDS = tuple(f"seal.round{i}" for i in range(4))
ROUND_ACTIONS = ("xor_a", "xor_b", "xor_a", "xor_b")
"""The action of each round of the cipher (``cookie.p4``)."""
ACTIVE_KEY = "masking.active_key"
STATIC_COOKIE = "masking.static_cookie"
TABLES = (*ROUNDS, ACTIVE_KEY, STATIC_COOKIE)


def entries(keys: Sequence[CookieKey], vips: Iterable[ResolvedVip]) -> State:
    """Return the entries. ``keys`` are the keys in force, oldest first."""
    state: State = {}
    for key in keys:
        for i, table in enumerate(ROUNDS):
            mask = 0x7F if i % 2 else 0xFF
            for index, byte in enumerate(key.tcp_tables[i]):
                state[Key(table, (key.epoch, index))] = Action(ROUND_ACTIONS[i], (byte & mask,))
    sids = [server.config.sid for vip in vips if vip.config.cookie_prefix is not None for server in vip.servers]
    for sid in sids:
        for key in keys:
            state[Key(STATIC_COOKIE, (key.epoch, sid))] = Action("rewrite_source", (key.seal_ip6(Ip6Cookie(sid)),))
    state[Key(ACTIVE_KEY, ())] = Action("set_active_key", (keys[-1].epoch, keys[-1].id & 0xFFFF))
    return state
