# SPDX-License-Identifier: Apache-2.0
"""Discovery beside a running controller: one task for each VIP with a source."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frontage.config.checks.remote_servers import DiscoveredCheck, check_room
from frontage.config.discovery import Source
from frontage.config.key_file import replace
from frontage.config.schema import Config
from frontage.config.vips import Protocol, Server, Vip
from frontage.discovery.roster import Roster
from frontage.discovery.sources import query
from frontage.discovery.targets import SourceError
from frontage.discovery.watch import watch

if TYPE_CHECKING:
    from prometheus_client.core import Metric

log = logging.getLogger(__name__)


MAX_QUERIES = 8
"""Queries at the same time."""


def state_file(file: Path) -> Path:
    """Return the path of the file with the last known servers, next to the configuration file."""
    file = file.resolve()
    return file.with_name(f".{file.name}.discovered.json")


def with_discovered(config: Config, rosters: Mapping[str, Roster]) -> Config:
    """Return the configuration with the discovered servers after those of the file.

    A server whose SID, name or endpoint is in use already, or whose tunnel a switch cannot use, is left out.
    """
    has_tunnels = any(vip.discovery is not None and vip.discovery.encapsulation is not None for vip in config.vips)
    tunnels = DiscoveredCheck(config) if has_tunnels else None
    vips = {vip.name: vip for vip in config.vips}
    sids = {server.sid for server in config.servers}
    names = {server.name for server in config.servers}
    endpoints = {_endpoint(vips[server.vip], server) for server in config.servers}
    found: list[Server] = []
    for vip in config.vips:
        roster = rosters.get(vip.name) if vip.discovery is not None else None
        tunnel = vip.discovery.encapsulation if vip.discovery is not None else None
        for server in roster.servers(vip.name, tunnel) if roster is not None else ():
            is_free = server.sid not in sids and server.name not in names and _endpoint(vip, server) not in endpoints
            is_reachable = tunnels is None or tunnels.problem(server) is None
            if is_free and is_reachable and server.address.version == vip.address.version:
                sids.add(server.sid)
                endpoints.add(_endpoint(vip, server))
                found.append(server)
    return config.model_copy(update={"servers": (*config.servers, *found)}) if found else config


def _endpoint(vip: Vip, server: Server) -> tuple[object, ...]:
    """Return what identifies a server's packets in the switch. A QUIC server has the whole /64 of its IPv6 address."""
    length = 64 if vip.protocol is Protocol.UDP and server.address.version == 6 else server.address.max_prefixlen
    return vip.protocol, server.port, ip_network((server.address, length), strict=False)


@dataclass(slots=True)
class _State:
    """One VIP's source."""

    source: Source
    version: int
    error: str | None = None
    succeeded_at: float | None = None
    """Unix time of the last accepted result."""
    queries: dict[str, int] = field(default_factory=lambda: {"accepted": 0, "rejected": 0})


class Discovery:
    """Keeps the servers of VIPs with a source. Calls ``changed`` when they have changed."""

    def __init__(self, file: Path, changed: Callable[[], Awaitable[None]]):
        """``file`` is the configuration file."""
        self._file = state_file(file)
        self._threads = ThreadPoolExecutor(MAX_QUERIES, thread_name_prefix="discovery")
        """Threads of their own, so that slow sources do not delay the controller."""
        self._changed = changed
        self._states: dict[str, _State] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.rosters = _load(self._file)
        self._config: Config | None = None

    def allocations(self) -> dict[str, Any]:
        """Return the servers with their SIDs, as JSON values for `adopt`."""
        return {name: roster.to_json() for name, roster in self.rosters.items()}

    def adopt(self, allocations: Mapping[str, Any]) -> None:
        """Take over the servers and SIDs of another controller."""
        for name, entries in allocations.items():
            self.rosters[name] = Roster.from_json(entries)

    def follow(self, config: Config) -> None:
        """Query the sources of this configuration from now on."""
        self._config = config
        wanted = {vip.name: (vip.discovery, vip.address.version) for vip in config.vips if vip.discovery is not None}
        for name, state in list(self._states.items()):
            if wanted.get(name) != (state.source, state.version):
                self._tasks.pop(name).cancel()
                del self._states[name]
        for name, (source, version) in wanted.items():
            if name not in self._states:
                self._states[name] = _State(source, version)
                self.rosters.setdefault(name, Roster())
                self._tasks[name] = asyncio.create_task(self._poll(name, self._states[name]))

    async def close(self) -> None:
        """End all queries."""
        tasks, self._tasks, self._states = list(self._tasks.values()), {}, {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _poll(self, name: str, state: _State) -> None:
        watching = watch(state.source)
        try:
            while True:
                await self.step(name, state, time.time())
                await watching.wait(state.source.interval)
        finally:
            watching.close()

    async def step(self, name: str, state: _State, now: float) -> None:
        """Query one source, and keep the last known servers if the result is not usable."""
        roster = self.rosters[name]
        before = dict(roster.entries)
        try:
            found = await query(state.source, state.version, self._threads)
            updated = Roster(dict(roster.entries))
            updated.update(found, state.source, now)
            self._check_tunnels(name, updated, state.source)
            roster.entries = updated.entries
        except SourceError as error:
            state.queries["rejected"] += 1
            if state.error != str(error):
                log.warning("discovery of %s: %s: keeping the last known servers", name, error)
            state.error = str(error)
        else:
            state.queries["accepted"] += 1
            state.error, state.succeeded_at = None, now
        roster.expire(state.source, now)
        if roster.entries != before:
            log.info("discovery of %s: %d servers", name, roster.active)
            await asyncio.to_thread(_store, self._file, self.rosters)
            await self._changed()

    def _check_tunnels(self, name: str, roster: Roster, source: Source) -> None:
        """Check that switches can reach all remote servers of a result. Raises SourceError."""
        if source.encapsulation is None or self._config is None:
            return
        check = DiscoveredCheck(self._config)
        for server in roster.servers(name, source.encapsulation):
            if server.active and (problem := check.problem(server)) is not None:
                raise SourceError(problem)
        for finding in check_room(with_discovered(self._config, {**self.rosters, name: roster})):
            raise SourceError(finding.what)

    def describe(self) -> list[dict[str, Any]]:
        """Return the part of a status."""
        return [
            {
                "vip": name,
                "kind": state.source.kind,
                "servers": self.rosters[name].active,
                "gone": sum(entry.gone_at is not None for entry in self.rosters[name].entries.values()),
                "error": state.error,
                "succeeded_at": state.succeeded_at,
                **state.queries,
            }
            for name, state in self._states.items()
        ]

    def metrics(self) -> Iterable[Metric]:
        """Return the Prometheus metrics, none without a source."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        described = self.describe()
        if not described:
            return
        servers = GaugeMetricFamily("frontage_discovery_servers", "Servers that the source of a VIP names", labels=["vip"])
        queries = CounterMetricFamily(
            "frontage_discovery_queries", "Queries of a VIP's source, by result", labels=["vip", "result"]
        )
        failing = GaugeMetricFamily("frontage_discovery_failing", "1 if the last result was rejected", labels=["vip"])
        for one in described:
            servers.add_metric([one["vip"]], one["servers"])
            failing.add_metric([one["vip"]], float(one["error"] is not None))
            for result in ("accepted", "rejected"):
                queries.add_metric([one["vip"], result], one[result])
        yield from (servers, queries, failing)


def _load(file: Path) -> dict[str, Roster]:
    """Return the last known servers. A file that is missing or damaged counts as empty."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        return {str(name): Roster.from_json(entries) for name, entries in data.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        log.warning("%s: cannot be read: %s: starting without the last known servers", file, error)
        return {}


def _store(file: Path, rosters: dict[str, Roster]) -> None:
    try:
        replace(file, json.dumps({name: roster.to_json() for name, roster in rosters.items()}, indent=1) + "\n")
    except OSError as error:
        log.warning("%s: cannot be written: %s: a restart will not know the servers' SIDs", file, error)
        with suppress(OSError):
            file.unlink()
