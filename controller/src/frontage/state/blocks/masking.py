"""``masking.p4``: sealing TCP's static cookie with the newest key; the static cookies that are QUIC servers' addresses."""

from __future__ import annotations

from frontage.config import Config
from frontage.cookie import Ip6Cookie
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation

ROUNDS = tuple(f"seal.round{i}" for i in range(4))
ACTIVE_KEY = "masking.active_key"
STATIC_COOKIE = "masking.static_cookie"
TABLES = (*ROUNDS, ACTIVE_KEY, STATIC_COOKIE)


def entries(config: Config, allocation: Allocation) -> State:
    state: State = {}
    keys = config.cookie_keys
    for key in keys:
        for i, table in enumerate(ROUNDS):
            mask = 0x7F if i % 2 else 0xFF
            for index, byte in enumerate(key.tcp_tables[i]):
                state[Key(table, (key.epoch, index))] = Action("set_output", (byte & mask,))
    prefixed = {vip.name for vip in config.vips if vip.cookie_prefix is not None}
    for server in config.servers:
        if server.vip in prefixed:
            for key in keys:
                interface_id = key.seal_ip6(Ip6Cookie(server.sid))
                state[Key(STATIC_COOKIE, (key.epoch, server.sid))] = Action("rewrite_source", (interface_id,))
    state[Key(ACTIVE_KEY, ())] = Action("set_active_key", (keys[-1].epoch, keys[-1].id & 0xFFFF))
    return state
