"""One switch's demand: its counters as load reports; and clients of whom nothing is known, for the sites to measure."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field

from frontage.mapping.compute.prefixes import Prefix
from frontage.mapping.control.placer import policy_of
from frontage.mapping.demand.counters import Epochs
from frontage.mapping.demand.reports import Reporter
from frontage.mapping.errors import StoreError
from frontage.mapping.settings import EndUsers, Placement
from frontage.mapping.store.store import Store
from frontage.p4.digests import Learned
from frontage.p4.errors import SwitchError
from frontage.p4.p4info import PipelineError
from frontage.service.controller import Controller
from frontage.service.health import Phase
from frontage.state.blocks import demand

log = logging.getLogger(__name__)

_LOOK = 0.25
"""Seconds between looks whether there is a switch to be read."""
_READINGS = 8
"""Of an epoch, so that what is decided at its end goes by what is new."""


@dataclass(slots=True)
class Counters:
    """What was done so far, for metrics."""

    handshakes: dict[tuple[str, int], int] = field(default_factory=dict)
    """By service and region."""
    reports: int = 0
    vectors: int = 0
    """Reports with the regions in them."""
    learned: int = 0
    """Prefixes of clients in no region, each once a reading."""
    left_out: int = 0
    """Of these, those for which there was no room."""
    failures: int = 0
    error: str | None = None
    """Why the last reading was not told; it is with the next."""


class Measurer:
    """Beside one running controller. `run` until cancelled."""

    def __init__(self, controller: Controller, settings: Placement, end_users: EndUsers, site: int):
        self.counters = Counters()
        self.store: Store | None = None
        """Where it tells; it counts before there is one."""
        self._controller = controller
        self._settings = settings
        self._end_users = end_users
        self._site = site
        self._epochs = Epochs()
        self._reporter = Reporter(policy_of(settings))
        self._regions: set[int] = set()
        self._learned: set[Prefix] = set()
        self._read_at: float | None = None

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_LOOK if self._read_at is None else self._settings.epoch / _READINGS)
            try:
                await self.step(time.monotonic(), time.time())
            except (StoreError, SwitchError, PipelineError) as error:
                # What was counted is counted still, and told with the next report.
                self.counters.failures += 1
                if self.counters.error != str(error):
                    log.warning("demand: %s", error)
                self.counters.error = str(error)

    async def step(self, started: float, now: float) -> None:
        """One reading, at ``started`` of the monotonic clock and Unix time ``now``. Raises StoreError, SwitchError."""
        controller = self._controller
        session, pipeline = controller.session, controller.pipeline
        if controller.health.phase is Phase.STANDBY:
            # What comes now is told by the primary, and only by it.
            self._epochs.overlook()
        if session is None or pipeline is None or not controller.primary or controller.health.phase is not Phase.INSTALLED:
            return
        cells, generation = demand.cells(controller.config), controller.health.pipelines_set
        regions = set(controller.mapping.regions.values())
        wanted = demand.cell_indices(cells, regions | self._regions)
        counter_id = pipeline.schema.counter(demand.HANDSHAKES)
        values = {cell: count.packets for cell, count in (await session.read_cells(counter_id, wanted)).items()}
        self._regions = regions
        found = self._epochs.since(cells, generation, values)
        if found is not None and self._read_at is not None:
            services = {vip.name: vip.artemis.service for vip in controller.config.vips if vip.artemis is not None}
            for vip, counts in found.items():
                self._count(services[vip], counts, started - self._read_at)
        self._read_at = started
        await asyncio.to_thread(self._tell, now)
        await self._note(session.take_learned(), now)
        self.counters.error = None

    def _count(self, service: str, counts: dict[int, int], seconds: float) -> None:
        self._reporter.count(service, counts, seconds)
        for region, handshakes in counts.items():
            self.counters.handshakes[service, region] = self.counters.handshakes.get((service, region), 0) + handshakes

    def _tell(self, now: float) -> None:
        due = self._reporter.due()
        if not due:
            return
        self._told_to().tell(self._site, due, now)
        for report in due:
            self._reporter.told(report)
            self.counters.reports += 1
            self.counters.vectors += report.regions is not None

    def _told_to(self) -> Store:
        if self.store is None:
            raise StoreError("there is no store yet, and what is counted waits")
        return self.store

    async def _note(self, learned: Learned, now: float) -> None:
        """Take in what the switch has learned, and acknowledge it: of a client that is still nowhere it tells again."""
        session = self._controller.session
        for digest, fields in learned.messages:
            if digest == demand.NEW_CLIENT:
                version, bits = fields
                self._learned.add(self._prefix(version, bits))
        if self._learned:
            left_out = await asyncio.to_thread(self._told_to().saw, self._learned, now, self._end_users.max_regions)
            if left_out and not self.counters.left_out:
                log.warning("demand: no room for %d new prefixes of clients: raise end_users.max_regions", left_out)
            self.counters.learned += len(self._learned)
            self.counters.left_out += left_out
            self._learned = set()
        if session is not None:
            await session.acknowledge(learned)

    def _prefix(self, version: int, bits: int) -> Prefix:
        length = 24 if version == 4 else 48
        whole = Prefix(version, bits << (32 - length if version == 4 else 128 - length), length)
        return whole.shortened(self._end_users.prefix_length(version))
