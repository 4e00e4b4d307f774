# SPDX-License-Identifier: Apache-2.0
"""``fragments.p4``: the addresses of servers, whose fragments are dropped."""

from __future__ import annotations

from collections.abc import Iterable

from frontage.config.vips import Protocol
from frontage.p4.entries import Action, Key, State
from frontage.state.resolved import ResolvedVip

SOURCE4 = "fragments.source4"
SOURCE6 = "fragments.source6"
TABLES = (SOURCE4, SOURCE6)

_QUIC_PREFIX = 64
"""Length of the prefix from which a QUIC server over IPv6 may send."""


def entries(vips: Iterable[ResolvedVip]) -> State:
    """Return the entries. Several servers may have the same address."""
    state: State = {}
    for vip in vips:
        for server in vip.servers:
            address = server.config.address
            value = int(address)
            if address.version == 4:
                key = Key(SOURCE4, (value,))
            elif vip.config.protocol is Protocol.UDP:
                host_bits = address.max_prefixlen - _QUIC_PREFIX
                key = Key(SOURCE6, ((value >> host_bits << host_bits, _QUIC_PREFIX),))
            else:
                key = Key(SOURCE6, ((value, address.max_prefixlen),))
            state[key] = Action("drop_fragment")
    return state
