# SPDX-License-Identifier: Apache-2.0
"""The main loop of the mapping: every interval it collects measurements, computes if it holds the lease, and writes the changes."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import socket
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from frontage.fields import IPAddress
from frontage.mapping.compute.engine import Engine
from frontage.mapping.compute.orders import Margin
from frontage.mapping.compute.values import Sample
from frontage.mapping.control.dispatcher import Dispatcher, DispatcherError
from frontage.mapping.control.placer import Placer
from frontage.mapping.control.probing import Prober
from frontage.mapping.demand.waiting import handshake_waits
from frontage.mapping.errors import StoreError
from frontage.mapping.services import Replica, Service
from frontage.mapping.settings import EndUsers, Placement
from frontage.mapping.store import tables as published
from frontage.mapping.store.store import Store
from frontage.mapping.store.tables import Tables

log = logging.getLogger(__name__)

LEASE_INTERVALS = 5
"""Intervals without a sign of the leader after which another controller takes the lease."""
EXPIRY_INTERVAL = 60.0
"""Seconds between searches for expired RTTs and prefixes."""


@dataclass(slots=True)
class Counters:
    """Counters of the mapper's work, for metrics."""

    rounds: int = 0
    failures: int = 0
    """Rounds that the store made fail."""
    computations: int = 0
    compute_seconds: float = 0.0
    samples: int = 0
    changed_entries: int = 0
    error: str | None = None
    left_out: int = 0
    memory_bytes: int = 0
    sites_out: set[int] = field(default_factory=set)


class Mapper:
    """The mapping of one controller. `run` ends only by cancellation."""

    def __init__(
        self,
        settings: EndUsers,
        sites: Mapping[int, IPAddress],
        services: Iterable[Service] = (),
        on_change: Callable[[Tables], Awaitable[None]] | None = None,
        *,
        site: int,
        name: str | None = None,
        placement: Placement | None = None,
    ):
        """``sites``: the tunnel addresses of the sites' switches by site id. ``services``: settings of services, with the numbers
        that they must have. ``site``: this controller's site. ``name``: distinguishes the controllers of one site.

        Raises StoreError.
        """
        self.settings = settings
        self.sites = dict(sites)
        self.services = tuple(services)
        self.store = Store(settings.store, window=settings.window)
        self.name = f"{site}@{name or f'{socket.gethostname()}:{os.getpid()}'}"
        self.placement = placement
        self.placer: Placer | None = None
        """Present while this controller computes and services are placed by demand."""
        self.tables = Tables()
        self.counters = Counters()
        self.engine: Engine | None = None
        """Present while this controller computes."""
        timeout = max(1.0, settings.interval / 2)
        self.dispatchers = [Dispatcher(item.url, item.site, timeout) for item in settings.dispatchers]
        self.prober = Prober(settings, self.sites, self.store)
        self._on_change = on_change
        self._version = 0
        """The version of the store up to which the engine has taken in measurements and deployments."""
        self._redundancy: dict[str, int] = {}
        self._expired_at = -math.inf

    async def run(self) -> None:
        """Run one round per interval."""
        try:
            await self.register()
            while True:
                started = time.monotonic()
                await self.step(time.time())
                await asyncio.sleep(max(0.0, self.settings.interval - (time.monotonic() - started)))
        finally:
            await self.prober.close()
            self.store.close()

    async def register(self) -> None:
        """Write the services that the configuration names to the store."""
        await asyncio.to_thread(self._register)

    def _register(self) -> None:
        have = self.store.services()
        self.store.register([service for service in self.services if not service.matches(have.get(service.name))])

    async def step(self, now: float) -> None:
        """Run one round at Unix time ``now``. Failures go to `counters` and `Dispatcher.error`; the next round tries again."""
        self.counters.rounds += 1
        try:
            out = await self._collect(now)
            await asyncio.to_thread(self._compute, now, out)
            before = self.tables
            self.tables = await asyncio.to_thread(published.read, self.store, before)
        except StoreError as error:
            self.counters.failures += 1
            if self.counters.error != str(error):
                log.error("mapping: %s", error)
            self.counters.error = str(error)
            return
        self.counters.error = None
        if self.tables.content != before.content and self._on_change is not None:
            await self._on_change(self.tables)
        await asyncio.gather(*(asyncio.to_thread(self._push, dispatcher) for dispatcher in self.dispatchers))
        self.prober.start(self.dispatchers, now)

    async def _collect(self, now: float) -> set[int]:
        """Store what the dispatchers have measured. Returns the sites where no dispatcher answers."""
        answers = await asyncio.gather(*(asyncio.to_thread(self._poll, dispatcher) for dispatcher in self.dispatchers))
        answering = {dispatcher.site for dispatcher, answer in zip(self.dispatchers, answers, strict=True) if answer is not None}
        replicas: dict[int, dict[tuple[int, str], Replica]] = {dispatcher.site: {} for dispatcher in self.dispatchers}
        samples: list[Sample] = []
        for answer in answers:
            if answer is not None:
                samples += answer[0]
                for replica in answer[1]:
                    replicas[replica.site][replica.sid, replica.service] = replica
        self.counters.samples += len(samples)
        # If no dispatcher at all answers, this controller is cut off, and the sites are not taken out.
        out = replicas.keys() - answering if answering else set()
        if answering:
            self.counters.sites_out = out
        else:
            replicas = {}
        await asyncio.to_thread(self._record, samples, replicas, now)
        return out

    def _poll(self, dispatcher: Dispatcher) -> tuple[list[Sample], list[Replica]] | None:
        try:
            dispatcher.read_version()
            answer = dispatcher.measurements(self.settings), dispatcher.replicas()
        except DispatcherError as error:
            self._on_failure(dispatcher, error)
            return None
        if dispatcher.error is not None:
            log.info("mapping: %s answers again", dispatcher.url)
            dispatcher.error = None
        return answer

    def _on_failure(self, dispatcher: Dispatcher, error: DispatcherError) -> None:
        if dispatcher.error is None:
            log.warning("mapping: %s", error)
        dispatcher.error = str(error)

    def _record(self, samples: Collection[Sample], replicas: dict[int, dict[tuple[int, str], Replica]], now: float) -> None:
        if self.placement is not None and samples:
            # Use the minimum RTTs from before these samples: a network's first handshake does not show how long it waited.
            known = self.store.known_rtts(sample.prefix for sample in samples)
            self.store.add_waits(handshake_waits(samples, known))
        self.store.add_samples(samples, now)
        for site, by_service in replicas.items():
            self.store.set_replicas(site, list(by_service.values()), now)

    def _compute(self, now: float, out: Collection[int] = ()) -> None:
        # If no dispatcher of the leader's site answers, assume that the leader is gone. If it is not, its next write fails on
        # the lease.
        lease = self.store.acquire_lease(self.name, now, LEASE_INTERVALS * self.settings.interval, out)
        if lease is None:
            if self.engine is not None:
                log.info("mapping: another controller computes")
            self.engine = self.placer = None
            return
        started = time.perf_counter()
        engine = self.engine
        if engine is not None and self.placer is not None:
            # Place by the regions and RTTs of the last round, so that this round steers by the decisions.
            self.placer.step(now, self.name, lease, engine, self.counters.sites_out)
        if now - self._expired_at >= EXPIRY_INTERVAL:
            self.store.expire(now, self.settings.max_age)
            self.store.expire_client_prefixes(now - self.settings.max_age)
            self._expired_at = now
        version = self.store.version()
        if engine is None:
            log.info("mapping: this controller computes")
            engine = self.engine = self._start_engine()
            if self.placement is None and (placed := self.store.placements()):
                # An earlier configuration placed services by demand.
                with self.store.publishing(self.name, lease) as (connection, number):
                    self.store.remove_placements(connection, number, placed)
        measurements = self.store.measurements(self._version)
        deployed, redundancy = self._changed_deployments()
        known = self.sites.keys()
        changes = engine.update(
            measurements.at(known),
            {name: (sites & known, redundancy[name]) for name, sites in deployed.items()},
        )
        if self._version == 0:
            published.remove_stale(changes, engine, self.tables)
        orders = {site: engine.order_of(vtep) for site, vtep in self.sites.items()}
        try:
            published.publish(self.store, self.name, lease, engine, changes, orders, self.tables)
        except StoreError:
            # The results are not in the store: start the computation anew.
            self.engine = self.placer = None
            raise
        self._version, self._redundancy = version, redundancy
        if len(changes):
            self.counters.computations += 1
            self.counters.changed_entries += len(changes)
        self.counters.compute_seconds += time.perf_counter() - started
        self.counters.left_out = engine.partition.left_out
        self.counters.memory_bytes = engine.nbytes

    def _changed_deployments(self) -> tuple[dict[str, set[int]], dict[str, int]]:
        """Return the sites of services whose sites or redundancy have changed, and the redundancy of all services."""
        redundancy = {name: service.redundancy for name, service in self.store.services().items()}
        deployed = self.store.deployments(self._version)
        if others := {name for name in redundancy if self._redundancy.get(name) != redundancy[name]} - deployed.keys():
            deployed |= {name: sites for name, sites in self.store.deployments().items() if name in others}
        return deployed, redundancy

    def _start_engine(self) -> Engine:
        """Return an engine that knows only the numbers in use."""
        self._version, self._redundancy = 0, {}
        self.tables = published.read(self.store, self.tables)
        settings = self.settings
        margin = Margin(settings.hysteresis, settings.slack_us)
        engine = Engine(self.sites, margin, max_regions=settings.max_regions, separate_orders=self.placement is not None)
        if self.placement is not None:
            self.placer = Placer(self.placement, self.store, settings.interval)
        deployments = {number: (choices.sites, choices.redundancy) for number, choices in self.tables.deployments.items()}
        engine.adopt(self.tables.clients, deployments)
        return engine

    def _push(self, dispatcher: Dispatcher) -> None:
        if dispatcher.error is not None:
            return
        try:
            dispatcher.push(self.tables, self.sites)
        except DispatcherError as error:
            self._on_failure(dispatcher, error)
