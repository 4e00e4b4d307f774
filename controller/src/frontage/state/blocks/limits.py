# SPDX-License-Identifier: Apache-2.0
"""``limits.p4``: the limits of VIPs and of their client prefixes, as direct meters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from frontage.p4.entries import Action, Key, State
from frontage.state.resolved import ResolvedVip

CONNECTIONS = "limits.connections"
BYTES = "limits.bytes"
CONNECTIONS_BY_CLIENT = {4: "limits.connections_by_client4", 6: "limits.connections_by_client6"}
BYTES_BY_CLIENT = {4: "limits.bytes_by_client4", 6: "limits.bytes_by_client6"}
TABLES = (CONNECTIONS, BYTES, *CONNECTIONS_BY_CLIENT.values(), *BYTES_BY_CLIENT.values())
REFUSALS = "limits.refusals"
"""Name of the counter."""

_ACTIONS = {
    CONNECTIONS: "limit_vip_connections",
    BYTES: "limit_vip_bytes",
    **{table: f"limit_client_connections{version}" for version, table in CONNECTIONS_BY_CLIENT.items()},
    **{table: f"limit_client_bytes{version}" for version, table in BYTES_BY_CLIENT.items()},
}


def entries(vips: Iterable[ResolvedVip]) -> State:
    """Return the entries; none for VIPs without limits."""
    return dict(entry for vip in vips for entry in _vip_entries(vip))


def _vip_entries(vip: ResolvedVip) -> Iterator[tuple[Key, Action]]:
    limits = vip.config.limits
    if limits is None:
        return
    yield from _entry(CONNECTIONS, (vip.id,), limits.connection_meter)
    yield from _entry(BYTES, (vip.id,), limits.bandwidth_meter)
    for client in limits.clients:
        version = client.prefix.version
        for prefix in client.prefixes:
            source = int(prefix.network_address), prefix.prefixlen
            yield from _entry(CONNECTIONS_BY_CLIENT[version], (vip.id, source), client.connection_meter)
            yield from _entry(BYTES_BY_CLIENT[version], (vip.id, source), client.bandwidth_meter)


def _entry(table: str, match: tuple[int | tuple[int, int], ...], meter: tuple[int, int] | None) -> Iterator[tuple[Key, Action]]:
    if meter is not None:
        yield Key(table, match), Action(_ACTIONS[table], meter=meter)
