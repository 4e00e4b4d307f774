# SPDX-License-Identifier: Apache-2.0
"""Load reports (Auspice, section 1.2), which record servers send to the leading controller.

A report contains the requests since the last one, in a few messages without acknowledgment. A lost one makes the sample of an epoch
smaller.
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
from frontage_records.placement.counting import Counts, DemandCounter, Requests

log = logging.getLogger(__name__)

SUBJECT = "records-demand"
_RECORDS_PER_MESSAGE = 500
"""Records in one message, which keeps it far below the servers' `max_payload`."""
REPORTS_PER_EPOCH = 8
"""A decision uses the reports that lie within its epoch: seven eighths of the epoch's requests, because the epochs of the servers and
of the controller are not aligned."""
_LEAST_REQUESTS = 100
"""Requests from which a server computes its capacity."""
_ROUND_TRIPS = 8
"""Number of measurements whose minimum counts as the RTT to a site, because others include waiting times at busy servers."""


@dataclass(frozen=True, slots=True)
class Report:
    """The report of one record server."""

    site: int
    server: str
    """A random name."""
    seconds: float
    """The time in which the requests were counted."""
    capacity: float | None
    """Requests per second that the server can serve, as measured; None if it has not had enough requests."""
    rtts: Mapping[int, float]
    """RTT to the servers of other sites in microseconds; sites that do not answer are missing."""
    counts: Counts

    def messages(self) -> Iterator[bytes]:
        """Yield the data of the report's messages."""
        rows = [[guid, [[region, r.reads, r.writes] for region, r in by.items()]] for guid, by in self.counts.items()]
        parts = [rows[at : at + _RECORDS_PER_MESSAGE] for at in range(0, len(rows), _RECORDS_PER_MESSAGE)] or [[]]
        for number, part in enumerate(parts):
            head = {"site": self.site, "server": self.server, "seconds": self.seconds, "capacity": self.capacity, "rtts": self.rtts}
            yield json.dumps(head | {"part": number, "parts": len(parts), "counts": part}, separators=(",", ":")).encode()


def read(data: bytes) -> tuple[Report, int, int]:
    """Return a message as a report with a part of the counts, the number of the part, and how many there are. Raises ValueError."""
    try:
        found = json.loads(data)
        counts = {
            str(guid): {int(region): Requests(int(reads), int(writes)) for region, reads, writes in by}
            for guid, by in found["counts"]
        }
        capacity = found["capacity"]
        rtts = {int(site): float(rtt) for site, rtt in found["rtts"].items()}
        measured = None if capacity is None else float(capacity)
        report = Report(int(found["site"]), str(found["server"]), float(found["seconds"]), measured, rtts, counts)
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
        self.counter = DemandCounter()
        self.meter = CapacityMeter()
        self.round_trips = RoundTrips()
        self._store = store
        self._others = [site for site in sites if site != store.own]
        self._clock = clock
        self._since = clock()
        """The time of the last report."""
        self._server = token_hex(4)
        self._requests = 0

    def count(self, guid: str, region: int, *, writes: bool) -> None:
        """Count a request of a client in a region."""
        self._requests += 1
        self.counter.count(guid, region, writes=writes)

    def report(self) -> Report:
        """Return the report of the time since the last one."""
        before, self._since = self._since, self._clock()
        rtts, counts = self.round_trips.microseconds(), self.counter.take()
        return Report(self._store.own, self._server, self._since - before, self.meter.capacity, rtts, counts)

    async def run(self) -> None:
        """Measure and report until cancelled."""
        busy = time.process_time()
        while True:
            # The interval includes the measurements, so that all reports cover equal times.
            await asyncio.gather(asyncio.sleep(self.interval), *(self._measure(site) for site in self._others))
            before, busy = busy, time.process_time()
            self.meter.add(self._requests, busy - before)
            self._requests = 0
            try:
                for message in self.report().messages():
                    await self._store.connection.announce(SUBJECT, message)
            except RecordError as error:
                log.debug("no load report: %s", error)

    async def _measure(self, site: int) -> None:
        self.round_trips.add(site, await self._store.ping(site))
