# SPDX-License-Identifier: Apache-2.0
"""The servers of one VIP from discovery: a pure state machine.

A server keeps its SID as long as the source names it, and while it drains afterwards, because clients echo the SID. The SID
of a new server depends on its address and port, so that controllers that know the same servers agree on the SIDs.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from ipaddress import ip_address
from typing import Any

from frontage.config.discovery import Source
from frontage.config.remote_servers import Encapsulation
from frontage.config.vips import Server, ServerState
from frontage.discovery.targets import SourceError, Target
from frontage.fields import IPAddress

Endpoint = tuple[IPAddress, int]


@dataclass(frozen=True, slots=True)
class Entry:
    """A server with its SID."""

    sid: int
    weight: int = 1
    gone_at: float | None = None
    """Unix time at which the source stopped naming the server; None while it names it."""
    zone: str | None = None
    endpoint: IPAddress | None = None
    """Address at which the tunnel to the server ends; None for that of the source's `encapsulation`."""
    is_local: bool = False
    """True if packets reach the server without a tunnel."""

    def after_result(self, *, is_named: bool, now: float) -> Entry:
        """Return the entry after a result of the source, which may name the server."""
        if is_named:
            return replace(self, gone_at=None)
        return self if self.gone_at is not None else replace(self, gone_at=now)


@dataclass(slots=True)
class Roster:
    """The servers of a VIP by address and port."""

    entries: dict[Endpoint, Entry] = field(default_factory=dict)

    @property
    def active(self) -> int:
        """The number of servers that the source names."""
        return sum(entry.gone_at is None for entry in self.entries.values())

    def update(self, targets: Collection[Target], source: Source, now: float) -> None:
        """Take over a result of the source. Raises SourceError, and then changes nothing."""
        if len(targets) < source.min_servers:
            raise SourceError(f"{len(targets)} servers are less than min_servers, {source.min_servers}")
        first, last = source.sids
        if len(targets) > last - first + 1:
            raise SourceError(f"{len(targets)} servers, but `sids` has room for {last - first + 1}")
        if source.encapsulation is None and (ends := [target.endpoint for target in targets if target.endpoint is not None]):
            raise SourceError(f"the label endpoint {ends[0]}, but `discovery` has no `encapsulation`: add it")
        named = {(target.address, target.port): target for target in targets}
        entries = {
            endpoint: entry.after_result(is_named=endpoint in named, now=now)
            for endpoint, entry in self.entries.items()
            if first <= entry.sid <= last
        }
        for endpoint, target in sorted(named.items(), key=lambda item: (int(item[0][0]), item[0][1])):
            known = entries.get(endpoint)
            sid = known.sid if known is not None else _free_sid(endpoint, range(first, last + 1), entries)
            entries[endpoint] = Entry(sid, target.weight, zone=target.zone, endpoint=target.endpoint, is_local=target.is_local)
        self.entries = entries

    def expire(self, source: Source, now: float) -> None:
        """Remove servers that have drained."""
        self.entries = {
            endpoint: entry
            for endpoint, entry in self.entries.items()
            if entry.gone_at is None or now < entry.gone_at + source.drain
        }

    def servers(self, vip: str, encapsulation: Encapsulation | None = None) -> tuple[Server, ...]:
        """Return the servers as configuration objects, in the order of their SIDs. ``encapsulation`` is that of the source."""
        return tuple(
            Server(
                name=f"{vip}.{entry.sid}",
                vip=vip,
                address=address,
                port=port,
                sid=entry.sid,
                weight=entry.weight,
                zone=entry.zone,
                encapsulation=_tunnel(entry, encapsulation),
                state=ServerState.ACTIVE if entry.gone_at is None else ServerState.DRAINING,
            )
            for (address, port), entry in sorted(self.entries.items(), key=lambda item: item[1].sid)
        )

    def to_json(self) -> list[dict[str, Any]]:
        """Return the roster for a file."""
        return [
            {"address": str(address), "port": port, **asdict(entry), "endpoint": str(entry.endpoint) if entry.endpoint else None}
            for (address, port), entry in self.entries.items()
        ]

    @classmethod
    def from_json(cls, data: Iterable[dict[str, Any]]) -> Roster:
        """Return the roster of a file. Raises ValueError, KeyError or TypeError."""
        return cls({(ip_address(one["address"]), int(one["port"])): _entry(one) for one in data})


def _entry(data: Mapping[str, Any]) -> Entry:
    gone_at, zone, endpoint = data["gone_at"], data.get("zone"), data.get("endpoint")
    return Entry(
        int(data["sid"]),
        int(data["weight"]),
        None if gone_at is None else float(gone_at),
        None if zone is None else str(zone),
        None if endpoint is None else ip_address(endpoint),
        bool(data.get("is_local", False)),
    )


def _tunnel(entry: Entry, encapsulation: Encapsulation | None) -> Encapsulation | None:
    if encapsulation is None or entry.is_local:
        return None
    return encapsulation if entry.endpoint is None else encapsulation.model_copy(update={"endpoint": entry.endpoint})


def _free_sid(endpoint: Endpoint, sids: range, entries: dict[Endpoint, Entry]) -> int:
    """Return a free SID, the first one from a hash on. If all are in use, end the drain of the server that is gone the longest."""
    used = {entry.sid for entry in entries.values()}
    if len(used) == len(sids):
        gone, entry = min(
            ((end, one) for end, one in entries.items() if one.gone_at is not None), key=lambda item: item[1].gone_at or 0
        )
        del entries[gone]
        return entry.sid
    address, port = endpoint
    start = zlib.crc32(f"{address} {port}".encode()) % len(sids)
    return next(sid for sid in (sids[(start + step) % len(sids)] for step in range(len(sids))) if sid not in used)
