# SPDX-License-Identifier: Apache-2.0
"""The demand that one switch sees: load reports from its counters, and the prefixes of clients that are in no region."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field

from frontage.mapping.compute.prefixes import Prefix
from frontage.mapping.control.placer import policy_of
from frontage.mapping.demand.counters import CounterDeltas
from frontage.mapping.demand.reports import Reporter
from frontage.mapping.errors import StoreError
from frontage.mapping.settings import EndUsers, Placement
from frontage.mapping.store.store import Store
from frontage.p4.digests import DigestMessages
from frontage.p4.errors import SwitchError
from frontage.p4.p4info import PipelineError
from frontage.service.controller import Controller
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


class Measurer:
    """Measures demand beside one running controller. `run` ends only by cancellation."""

    def __init__(self, controller: Controller, settings: Placement, end_users: EndUsers, site: int):
        self.counters = Counters()
        self.store: Store | None = None
        """The store for reports. Without one, the measurer only counts."""
        self._controller = controller
        self._settings = settings
        self._end_users = end_users
        self._site = site
        self._deltas = CounterDeltas()
        self._reporter = Reporter(policy_of(settings))
        self._regions: set[int] = set()
        self._learned: set[Prefix] = set()
        self._read_at: float | None = None

    async def run(self) -> None:
        """Read the switch's counters for ever."""
        while True:
            await asyncio.sleep(_POLL_INTERVAL if self._read_at is None else self._settings.epoch / _READINGS_PER_EPOCH)
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
        controller = self._controller
        session, pipeline = controller.session, controller.pipeline
        if controller.health.phase is Phase.STANDBY:
            # The primary reports what is counted now.
            self._deltas.skip()
        if session is None or pipeline is None or not controller.primary or controller.health.phase is not Phase.INSTALLED:
            return
        cells, generation = demand.cells(controller.config), controller.health.pipelines_set
        regions = set(controller.mapping.regions.values())
        wanted = demand.cell_indices(cells, regions | self._regions)
        counter_id = pipeline.schema.counter(demand.HANDSHAKES)
        values = {cell: count.packets for cell, count in (await session.read_cells(counter_id, wanted)).items()}
        self._regions = regions
        deltas = self._deltas.update(cells, generation, values)
        if deltas is not None and self._read_at is not None:
            services = {vip.name: vip.artemis.service for vip in controller.config.vips if vip.artemis is not None}
            for vip, counts in deltas.items():
                self._count(services[vip], counts, started - self._read_at)
        self._read_at = started
        await asyncio.to_thread(self._report, now)
        await self._store_new_clients(session.take_digests(), now)
        self.counters.error = None

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

    async def _store_new_clients(self, learned: DigestMessages, now: float) -> None:
        """Store the prefixes from the switch's digests, and acknowledge the digests.

        The switch sends a digest again for a client that is still in no region.
        """
        session = self._controller.session
        for digest, fields in learned.messages:
            if digest == demand.NEW_CLIENT:
                version, bits = fields
                self._learned.add(self._prefix(version, bits))
        if self._learned:
            store, limit = self._require_store(), self._end_users.max_regions
            left_out = await asyncio.to_thread(store.add_client_prefixes, self._learned, now, limit)
            if left_out and not self.counters.left_out:
                log.warning("demand: no room for %d new client prefixes: raise end_users.max_regions", left_out)
            self.counters.learned += len(self._learned)
            self.counters.left_out += left_out
            self._learned = set()
        if session is not None:
            await session.acknowledge(learned)

    def _prefix(self, version: int, bits: int) -> Prefix:
        length = 24 if version == 4 else 48
        prefix = Prefix(version, bits << (32 - length if version == 4 else 128 - length), length)
        return prefix.shortened(self._end_users.prefix_length(version))
