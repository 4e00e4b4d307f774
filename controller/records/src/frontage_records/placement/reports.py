# SPDX-License-Identifier: Apache-2.0
"""Load reports (Auspice, section 1.2), which record servers send to the leading controller.

A report consists of a few messages without acknowledgment. Each report contains all rates, so a lost one only delays a decision.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from secrets import token_hex

from frontage_records.errors import RecordError
from frontage_records.jetstream.engine import JetStream
from frontage_records.placement.counting import DemandCounter, Rates

log = logging.getLogger(__name__)

SUBJECT = "records-demand"
_RECORDS_PER_MESSAGE = 500
"""Records in one message, which keeps it far below the servers' `max_payload`."""
_LEAST_RATE = 0.01
"""Requests per second below which a region is omitted."""
REPORTS_PER_EPOCH = 8
HALF_LIVES_PER_EPOCH = 8
"""Small enough that a demand that has ended no longer counts after one epoch."""
_LEAST_REQUESTS = 100
"""Requests from which a server computes its capacity."""
_ROUND_TRIPS = 8
"""Number of measurements whose minimum counts as the RTT to a site, because others include waiting times at busy servers."""

Demand = Mapping[str, Mapping[int, Rates]]
"""Rates by GUID and region."""


@dataclass(frozen=True, slots=True)
class Report:
    """The report of one record server."""

    site: int
    server: str
    """A random name."""
    capacity: float | None
    """Requests per second that the server can serve, as measured; None if it has not had enough requests."""
    rtts: Mapping[int, float]
    """RTT to the servers of other sites in microseconds; sites that do not answer are missing."""
    demand: Demand

    def messages(self) -> Iterator[bytes]:
        """Yield the data of the report's messages."""
        rows = [[guid, [[region, r.reads, r.writes] for region, r in by.items()]] for guid, by in self.demand.items()]
        parts = [rows[at : at + _RECORDS_PER_MESSAGE] for at in range(0, len(rows), _RECORDS_PER_MESSAGE)] or [[]]
        for number, part in enumerate(parts):
            head = {"site": self.site, "server": self.server, "capacity": self.capacity, "rtts": self.rtts}
            yield json.dumps(head | {"part": number, "parts": len(parts), "demand": part}, separators=(",", ":")).encode()


def read(data: bytes) -> tuple[Report, int, int]:
    """Return a message as a report with a part of the demand, the number of the part, and how many there are. Raises ValueError."""
    try:
        found = json.loads(data)
        demand = {
            str(guid): {int(region): Rates(float(reads), float(writes)) for region, reads, writes in by}
            for guid, by in found["demand"]
        }
        capacity = found["capacity"]
        rtts = {int(site): float(rtt) for site, rtt in found["rtts"].items()}
        report = Report(int(found["site"]), str(found["server"]), None if capacity is None else float(capacity), rtts, demand)
        return report, int(found["part"]), int(found["parts"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"invalid load report: {error!r}") from None


@dataclass(slots=True)
class CapacityMeter:
    """Measures the capacity of a server: the number of requests per second of the process's CPU time.

    A record server runs on one core, so this is the rate at which that core would be busy all the time.
    """

    capacity: float | None = None
    _requests: int = 0
    _busy: float = 0.0

    def add(self, requests: int, busy: float) -> None:
        """Add requests that took ``busy`` seconds of CPU time."""
        self._requests += requests
        self._busy += busy
        if self._requests >= _LEAST_REQUESTS and self._busy > 0:
            measured = self._requests / self._busy
            # An average over several reports, because a short one is noisy.
            self.capacity = measured if self.capacity is None else 0.75 * self.capacity + 0.25 * measured
            self._requests, self._busy = 0, 0.0


@dataclass(slots=True)
class RoundTrips:
    """The RTTs to other sites."""

    _times: dict[int, deque[float]] = field(default_factory=dict)

    def add(self, site: int, seconds: float | None) -> None:
        """Add a measurement. None means no answer, and discards the earlier ones."""
        if seconds is None:
            self._times.pop(site, None)
        else:
            self._times.setdefault(site, deque(maxlen=_ROUND_TRIPS)).append(seconds * 1e6)

    def microseconds(self) -> dict[int, float]:
        """Return the RTT to each site that has answered last."""
        return {site: min(times) for site, times in self._times.items()}


class Reporter:
    """Counts the requests of one server, and reports them while `run` runs."""

    def __init__(self, store: JetStream, sites: list[int], epoch: float, clock: Callable[[], float] = time.monotonic):
        self.interval = epoch / REPORTS_PER_EPOCH
        self.counter = DemandCounter(epoch / HALF_LIVES_PER_EPOCH, clock())
        self.meter = CapacityMeter()
        self.round_trips = RoundTrips()
        self._store = store
        self._others = [site for site in sites if site != store.own]
        self._clock = clock
        self._server = token_hex(4)
        self._requests = 0

    def count(self, guid: str, region: int, *, writes: bool) -> None:
        """Count a request of a client in a region."""
        self._requests += 1
        self.counter.count(guid, region, self._clock(), writes=writes)

    def report(self) -> Report:
        """Return the current report."""
        demand = self.counter.rates(self._clock(), _LEAST_RATE)
        return Report(self._store.own, self._server, self.meter.capacity, self.round_trips.microseconds(), demand)

    async def run(self) -> None:
        """Measure and report until cancelled."""
        busy = time.process_time()
        while True:
            await asyncio.gather(*(self._measure(site) for site in self._others))
            before, busy = busy, time.process_time()
            self.meter.add(self._requests, busy - before)
            self._requests = 0
            try:
                for message in self.report().messages():
                    await self._store.connection.announce(SUBJECT, message)
            except RecordError as error:
                log.debug("no load report: %s", error)
            await asyncio.sleep(self.interval)

    async def _measure(self, site: int) -> None:
        self.round_trips.add(site, await self._store.ping(site))
