"""The running mapping: every interval it collects, computes if it is the one to do so, and pushes what has changed."""

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
from frontage.mapping.demand.waiting import waits
from frontage.mapping.errors import StoreError
from frontage.mapping.services import Replica, Service
from frontage.mapping.settings import EndUsers, Placement
from frontage.mapping.store import tables as published
from frontage.mapping.store.store import Store
from frontage.mapping.store.tables import Tables

log = logging.getLogger(__name__)

LEASE_INTERVALS = 5
"""Intervals after which another controller computes when the one that does is silent."""
EXPIRY_INTERVAL = 60.0
"""Seconds between looks for RTTs and prefixes that are too old."""


@dataclass(slots=True)
class Counters:
    """What was done so far, for metrics."""

    rounds: int = 0
    failures: int = 0
    """Rounds that the store did not let end."""
    computations: int = 0
    compute_seconds: float = 0.0
    samples: int = 0
    changed_entries: int = 0
    error: str | None = None
    left_out: int = 0
    memory_bytes: int = 0
    sites_out: set[int] = field(default_factory=set)


class Mapper:
    """One controller's part in the mapping. `run` until cancelled."""

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
        """``sites``: ids and the addresses at which their switches take tunnels. ``services``: with the numbers that they must
        have, 0 for any. ``site``: this controller's; ``name`` tells those of one site apart. Raises StoreError."""
        self.settings = settings
        self.sites = dict(sites)
        self.services = tuple(services)
        self.store = Store(settings.store, window=settings.window)
        self.name = f"{site}@{name or f'{socket.gethostname()}:{os.getpid()}'}"
        self.placement = placement
        self.placer: Placer | None = None
        """While this one computes, and services are placed by demand."""
        self.tables = Tables()
        self.counters = Counters()
        self.engine: Engine | None = None
        """While this one computes."""
        timeout = max(1.0, settings.interval / 2)
        self.dispatchers = [Dispatcher(one.url, one.site, timeout) for one in settings.dispatchers]
        self.prober = Prober(settings, self.sites, self.store)
        self._on_change = on_change
        self._seen = 0
        self._redundancy: dict[str, int] = {}
        self._expired = -math.inf

    async def run(self) -> None:
        try:
            await self.register()
            while True:
                started = time.monotonic()
                await self.step(time.time())
                await asyncio.sleep(max(0.0, self.settings.interval - (time.monotonic() - started)))
        finally:
            await self.prober.ended()
            self.store.close()

    async def register(self) -> None:
        """Tell the store of the services that the configuration names."""
        await asyncio.to_thread(self._register)

    def _register(self) -> None:
        have = self.store.services()
        new = [one for one in self.services if not one.matches(have.get(one.name))]
        self.store.register(new)

    async def step(self, now: float) -> None:
        """One round at Unix time ``now``. What fails is told in `counters` and `Dispatcher.error`, and tried again in the next."""
        self.counters.rounds += 1
        try:
            gone = await self._collect(now)
            await asyncio.to_thread(self._compute, now, gone)
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
        self.prober.order(self.dispatchers, now)

    async def _collect(self, now: float) -> set[int]:
        """Take in what the dispatchers know. Returns the sites none of whose dispatchers answers."""
        asked = [asyncio.to_thread(self._ask, dispatcher) for dispatcher in self.dispatchers]
        answers = await asyncio.gather(*asked)
        heard = {dispatcher.site for dispatcher, answer in zip(self.dispatchers, answers, strict=True) if answer is not None}
        replicas: dict[int, dict[tuple[int, str], Replica]] = {dispatcher.site: {} for dispatcher in self.dispatchers}
        samples: list[Sample] = []
        for answer in answers:
            if answer is not None:
                samples += answer[0]
                for replica in answer[1]:
                    replicas[replica.site][replica.sid, replica.service] = replica
        self.counters.samples += len(samples)
        # If nobody answers, it is this controller that is cut off: no reason to take all sites out.
        gone = replicas.keys() - heard if heard else set()
        if heard:
            self.counters.sites_out = gone
        else:
            replicas = {}
        await asyncio.to_thread(self._record, samples, replicas, now)
        return gone

    def _ask(self, dispatcher: Dispatcher) -> tuple[list[Sample], list[Replica]] | None:
        try:
            dispatcher.look()
            answer = dispatcher.measurements(self.settings), dispatcher.replicas()
        except DispatcherError as error:
            self._failed(dispatcher, error)
            return None
        if dispatcher.error is not None:
            log.info("mapping: %s answers again", dispatcher.url)
            dispatcher.error = None
        return answer

    def _failed(self, dispatcher: Dispatcher, error: DispatcherError) -> None:
        if dispatcher.error is None:
            log.warning("mapping: %s", error)
        dispatcher.error = str(error)

    def _record(self, samples: Collection[Sample], replicas: dict[int, dict[tuple[int, str], Replica]], now: float) -> None:
        if self.placement is not None and samples:
            # By what was known before: the first handshake of a network does not tell how much of it was waiting.
            self.store.wait(waits(samples, self.store.known(one.prefix for one in samples)))
        self.store.record(samples, now)
        for site, found in replicas.items():
            self.store.report(site, list(found.values()), now)

    def _compute(self, now: float, gone: Collection[int] = ()) -> None:
        # Who computed where all dispatchers are silent is probably gone; if not, its next writing tells it so.
        lease = self.store.lead(self.name, now, LEASE_INTERVALS * self.settings.interval, gone)
        if lease is None:
            if self.engine is not None:
                log.info("mapping: another controller computes")
            self.engine = self.placer = None
            return
        started = time.perf_counter()
        engine = self.engine
        if engine is not None and self.placer is not None:
            # By the regions and RTTs of the last round, so that this one steers by what is decided.
            self.placer.step(now, self.name, lease, engine, self.counters.sites_out)
        if now - self._expired >= EXPIRY_INTERVAL:
            self.store.expire(now, self.settings.max_age)
            self.store.forget_seen(now - self.settings.max_age)
            self._expired = now
        version = self.store.version()
        if engine is None:
            log.info("mapping: this controller computes")
            engine = self.engine = self._begin()
            if self.placement is None and (placed := self.store.places()):
                # By a configuration that is no more.
                with self.store.publishing(self.name, lease) as (connection, number):
                    self.store.unplace(connection, number, placed)
        cells = self.store.measurements(self._seen)
        services = self.store.services()
        deployed = self.store.deployments(self._seen)
        wanted = {name: service.redundancy for name, service in services.items()}
        if others := {name for name in wanted if self._redundancy.get(name) != wanted[name]} - deployed.keys():
            deployed |= {name: sites for name, sites in self.store.deployments().items() if name in others}
        known = self.sites.keys()
        changes = engine.update(
            cells.at(known),
            {name: (sites & known, wanted[name]) for name, sites in deployed.items()},
        )
        if self._seen == 0:
            published.forget_others(changes, engine, self.tables)
        orders = {site: engine.order_of(vtep) for site, vtep in self.sites.items()}
        try:
            published.publish(self.store, self.name, lease, engine, changes, orders, self.tables)
        except StoreError:
            # What was computed is not in the store: begin again.
            self.engine = self.placer = None
            raise
        self._seen, self._redundancy = version, wanted
        if len(changes):
            self.counters.computations += 1
            self.counters.changed_entries += len(changes)
        self.counters.compute_seconds += time.perf_counter() - started
        self.counters.left_out = engine.partition.left_out
        self.counters.memory_bytes = engine.nbytes

    def _begin(self) -> Engine:
        """An engine that knows nothing yet but the numbers in use."""
        self._seen, self._redundancy = 0, {}
        self.tables = published.read(self.store, self.tables)
        settings = self.settings
        margin = Margin(settings.hysteresis, settings.slack_us)
        engine = Engine(self.sites, margin, max_regions=settings.max_regions, apart=self.placement is not None)
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
            self._failed(dispatcher, error)
