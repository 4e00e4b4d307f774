# SPDX-License-Identifier: Apache-2.0
"""The servers that own the slots of Maglev's tables: now, before, and after a rollout.

A connection without a cookie stays with the server that owned its slot when the connection began. So the switch needs the other
owners of each slot, too (docs/second-hop.md). They come from the pools that the rollouts of a fleet name (`Config.pools`), and from
the installed entries, so that a restarted controller finds them again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from frontage import maglev
from frontage.config import Config
from frontage.config.hash_tables import rooms, slots
from frontage.config.vips import Protocol, Server, by_vip

MAX_OTHERS = 3
"""Servers of a slot besides its owner."""

MAX_POOLS = 8
"""Different pools of a VIP that the controller of a fleet remembers for switches that restart."""

Pools = Mapping[str, tuple[tuple[Server, ...], ...]]
"""The different pools of each VIP, by VIP name. The first one is that of Maglev's table."""

Others = Mapping[int, tuple[int, ...]]
"""The SIDs of the other servers by slot, in the order in which the switch tries them. Slots without others are absent."""

_table = lru_cache(maxsize=32)(maglev.table)
"""Tables of the last VIPs, because the state of a server changes more often than the set of servers."""


def slot_sids(servers: Sequence[Server], room: int) -> list[int]:
    """Return the SID of each slot of a table with ``room``; none without active servers.

    Draining moves only the slots of the draining server, and slow start only those that it gives back.
    """
    if not any(server.active for server in servers):
        return []
    backends = tuple(maglev.Backend(f"[{server.address}]:{server.port}", server.sid, server.weight) for server in servers)
    shares = {server.sid: server.share if server.active else 0 for server in servers if not server.active or server.share < 100}
    if len(shares) == len(servers):
        # Only servers in slow start are left.
        shares = {sid: share for sid, share in shares.items() if not share}
    return maglev.thinned(_table(backends, slots(len(servers), room)), shares)


@dataclass(frozen=True, slots=True)
class Owners:
    """The owners of one VIP's slots at some time."""

    sids: Sequence[int] = ()
    """By slot; empty without active servers."""
    others: Others = field(default_factory=dict)
    size: int = 0
    """The number of slots; zero if nothing is known."""


def pools_by_vip(config: Config) -> Pools:
    """Return the different pools of each VIP.

    The first pool contains only servers of ``config``. The others are complete, because a table depends on all servers of its
    pool.
    """
    known = {server.identity for server in config.servers}
    pools = [_grouped(pool) for pool in config.pools]
    servers = config.servers_by_vip
    return {
        vip.name: _pools(known, [pool[vip.name] for pool in pools if vip.name in pool], servers[vip.name]) for vip in config.vips
    }


def table_rooms(config: Config, pools: Pools) -> dict[str, int]:
    """Return the number of servers for which each VIP's table has room at least, by VIP name."""
    return rooms(config.vips, {name: len(of_vip[0]) for name, of_vip in pools.items()})


def _pools(
    known: Container[object], pools: Sequence[tuple[Server, ...]], servers: Sequence[Server]
) -> tuple[tuple[Server, ...], ...]:
    """Return the different pools of a VIP, the first one with the ``known`` servers only. Without a pool, return ``servers``."""
    for i, pool in enumerate(pools):
        if first := tuple(server for server in pool if server.identity in known):
            return tuple(dict.fromkeys((first, *pools[i + 1 :])))
    return (tuple(servers),)


def latest_pools(pools: Iterable[tuple[Server, ...]]) -> tuple[tuple[Server, ...], ...]:
    """Return the latest `MAX_POOLS` different pools of each VIP. The newest pools come first.

    During slow start, a slot has the owner that it has before or after, so the pools with these shares stand for those between.
    """
    pools_of: dict[str, dict[tuple[Server, ...], None]] = {}
    for i, pool in enumerate(pools):
        for name, servers in _grouped(pool).items():
            is_slow = any(server.active and server.share < 100 for server in servers)
            different = pools_of.setdefault(name, {})
            if i == 0 or not is_slow:
                different.setdefault(servers)
            if is_slow:
                different.setdefault(tuple(_whole(server) if server.share < 100 else server for server in servers))
                different.setdefault(tuple(server.draining() if server.share < 100 else server for server in servers))
    lists = [list(different) for different in pools_of.values()]
    return tuple(
        tuple(server for different in lists for servers in different[i : i + 1] for server in servers)
        for i in range(min(MAX_POOLS, max(map(len, lists), default=0)))
    )


def other_owners(config: Config, before: Mapping[str, Owners], names: Container[str]) -> dict[str, Others]:
    """Return the other servers of each slot for the TCP VIPs among ``names``, by VIP name.

    ``before`` are the installed owners, by VIP name.
    """
    pools, servers = pools_by_vip(config), config.servers_by_vip
    room = table_rooms(config, pools)
    return {
        vip.name: _merge(pools[vip.name], room[vip.name], before.get(vip.name, Owners()), servers[vip.name])
        for vip in config.vips
        if vip.name in names and vip.protocol is Protocol.TCP
    }


def _whole(server: Server) -> Server:
    """Return the server after its slow start."""
    return Server.model_construct(**{name: getattr(server, name) for name in Server.model_fields})


def _grouped(servers: Iterable[Server]) -> dict[str, tuple[Server, ...]]:
    return {name: tuple(group) for name, group in by_vip(servers).items()}


def _merge(pools: Sequence[Sequence[Server]], room: int, before: Owners, servers: Sequence[Server]) -> Others:
    """Return the other owners of each slot that are still among ``servers``."""
    current = slot_sids(pools[0], room)
    size = slots(len(pools[0]), room)
    identities, known = {server.identity for server in servers}, {server.sid for server in servers}
    tables = [table for pool in pools[1:] if (table := _remaining(pool, room, identities)) and table != current]
    if before.sids and list(before.sids) != current:
        tables.append(list(before.sids))
    if not tables and not before.others:
        return {}
    result: dict[int, tuple[int, ...]] = {}
    for slot in range(size):
        found = [table[at] for table in tables for at in _same(slot, size, len(table))]
        if before.others:
            found += [sid for at in _same(slot, size, before.size) for sid in before.others.get(at, ())]
        own = current[slot] if current else None
        others = [sid for sid in dict.fromkeys(found) if sid is not None and sid != own and sid in known]
        if others:
            result[slot] = tuple(others[:MAX_OTHERS])
    return result


def _remaining(pool: Sequence[Server], room: int, identities: Container[object]) -> list[int | None]:
    """Return the table of a pool, with None for servers that have lost their connections because their identities are gone."""
    gone = {server.sid for server in pool if server.identity not in identities}
    return [None if sid in gone else sid for sid in slot_sids(pool, room)]


def _same(slot: int, size: int, other_size: int) -> range:
    """Return the slots of a table of another size that have the same connections as ``slot``."""
    return range(slot & (other_size - 1), other_size, size)
