# SPDX-License-Identifier: Apache-2.0
"""The demand that the switches of a site see: load reports from their counters, and the prefixes of clients that are in no region."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from dataclasses import dataclass, field

from frontage.mapping.compute.prefixes import Prefix
from frontage.mapping.control.placer import policy_of
from frontage.mapping.demand.counters import CounterDeltas
from frontage.mapping.demand.reports import Reporter
from frontage.mapping.errors import StoreError
from frontage.mapping.settings import EndUsers, Placement
from frontage.mapping.store.store import Store
from frontage.p4.errors import SwitchError
from frontage.p4.p4info import PipelineError
from frontage.p4.session import Session
from frontage.service.controller import Controller
from frontage.service.fleet import Fleet
from frontage.service.health import Phase
from frontage.state.blocks import demand

log = logging.getLogger(__name__)

_POLL_INTERVAL = 0.25
"""Seconds between attempts to read the switch before the first reading."""
_READINGS_PER_EPOCH = 8
"""Readings per epoch, so that decisions at its end rest on recent counts."""


@dataclass(slots=True)
class Counters:
    """Counters of the measurer's work, for metrics."""

    handshakes: dict[tuple[str, int], int] = field(default_factory=dict)
    """Handshakes by service and region."""
    reports: int = 0
    vectors: int = 0
    """Reports that contain the regions."""
    learned: int = 0
    """Prefixes of clients in no region, each counted once per reading."""
    left_out: int = 0
    """The part of `learned` for which there was no room."""
    failures: int = 0
    error: str | None = None
    """Why the last reading could not be reported. The next report includes it."""


@dataclass(slots=True)
class _Switch:
    """The state of the readings of one switch."""

    deltas: CounterDeltas = field(default_factory=CounterDeltas)
    regions: set[int] = field(default_factory=set)


class Measurer:
    """Measures demand beside the controllers of a fleet. `run` ends only by cancellation."""

    def __init__(self, fleet: Fleet, settings: Placement, end_users: EndUsers, site: int):
        self.counters = Counters()
        self.store: Store | None = None
        """The store for reports. Without one, the measurer only counts."""
        self._fleet = fleet
        self._switches: dict[str, _Switch] = {}
        """By name, as `Fleet.controllers`."""
        self._settings = settings
        self._end_users = end_users
        self._site = site
        self._reporter = Reporter(policy_of(settings))
        self._learned: set[Prefix] = set()
        self.read_at: float | None = None
        """The time of the last reading, on the monotonic clock."""

    async def run(self) -> None:
        """Read the switch's counters for ever."""
        while True:
            await asyncio.sleep(_POLL_INTERVAL if self.read_at is None else self._settings.epoch / _READINGS_PER_EPOCH)
            try:
                await self.step(time.monotonic(), time.time())
            except (StoreError, SwitchError, PipelineError) as error:
                # Nothing is lost: the counts go into the next report.
                self.counters.failures += 1
                if self.counters.error != str(error):
                    log.warning("demand: %s", error)
                self.counters.error = str(error)

    async def step(self, started: float, now: float) -> None:
        """Take one reading at ``started`` of the monotonic clock and Unix time ``now``. Raises StoreError, SwitchError."""
        controllers = self._fleet.controllers
        self._switches = {name: self._switches.get(name) or _Switch() for name in controllers}
        handshakes: dict[str, Counter[int]] = {}
        has_read = False
        for name, controller in controllers.items():
            counts = await self._read(self._switches[name], controller)
            has_read |= counts is not None
            for service, by_region in (counts or {}).items():
                handshakes.setdefault(service, Counter()).update(by_region)
        if not has_read:
            return
        if self.read_at is not None:
            for service, by_region in handshakes.items():
                self._count(service, by_region, started - self.read_at)
        self.read_at = started
        await asyncio.to_thread(self._report, now)
        for controller in controllers.values():
            if controller.session is not None:
                await self._store_new_clients(controller.session, now)
        self.counters.error = None

    async def _read(self, switch: _Switch, controller: Controller) -> dict[str, dict[int, int]] | None:
        """Return the handshakes of one switch since its last reading, by service and region; none if this is its first one.

        Return None if the switch cannot be read now. Raises SwitchError.
        """
        session, pipeline = controller.session, controller.pipeline
        if controller.health.phase is Phase.STANDBY:
            # The primary reports what is counted now.
            switch.deltas.skip()
        if session is None or pipeline is None or not controller.primary or controller.health.phase is not Phase.INSTALLED:
            return None
        cells, generation = demand.cells(controller.config), controller.health.pipelines_set
        regions = set(controller.mapping.regions.values())
        wanted = demand.cell_indices(cells, regions | switch.regions)
        counter_id = pipeline.schema.counter(demand.HANDSHAKES)
        values = {cell: count.packets for cell, count in (await session.read_cells(counter_id, wanted)).items()}
        switch.regions = regions
        deltas = switch.deltas.update(cells, generation, values)
        services = {vip.name: vip.artemis.service for vip in controller.config.vips if vip.artemis is not None}
        return {services[vip]: counts for vip, counts in (deltas or {}).items()}

    def _count(self, service: str, counts: dict[int, int], seconds: float) -> None:
        self._reporter.count(service, counts, seconds)
        for region, handshakes in counts.items():
            self.counters.handshakes[service, region] = self.counters.handshakes.get((service, region), 0) + handshakes

    def _report(self, now: float) -> None:
        due = self._reporter.due()
        if not due:
            return
        self._require_store().add_reports(self._site, due, now)
        for report in due:
            self._reporter.acknowledge(report)
            self.counters.reports += 1
            self.counters.vectors += report.regions is not None

    def _require_store(self) -> Store:
        if self.store is None:
            raise StoreError("the store is not open yet: counts are kept until it is")
        return self.store

    async def _store_new_clients(self, session: Session, now: float) -> None:
        """Store the prefixes from the switch's digests, and acknowledge the digests.

        The switch sends a digest again for a client that is still in no region.
        """
        learned = session.take_digests(demand.NEW_CLIENT)
        for version, bits in learned.messages:
            self._learned.add(self._prefix(version, bits))
        if self._learned:
            store, limit = self._require_store(), self._end_users.max_regions
            left_out = await asyncio.to_thread(store.add_client_prefixes, self._learned, now, limit)
            if left_out and not self.counters.left_out:
                log.warning("demand: no room for %d new client prefixes: raise end_users.max_regions", left_out)
            self.counters.learned += len(self._learned)
            self.counters.left_out += left_out
            self._learned = set()
        await session.acknowledge(learned)

    def _prefix(self, version: int, bits: int) -> Prefix:
        length = 24 if version == 4 else 48
        prefix = Prefix(version, bits << (32 - length if version == 4 else 128 - length), length)
        return prefix.shortened(self._end_users.prefix_length(version))
