# SPDX-License-Identifier: Apache-2.0
"""The hops of connections, as switches, dispatchers, balancers and real servers counted and logged them."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from frontage_testbed.nodes import NodeError

from .addresses import edges, real_servers
from .site import FleetSite
from .testbed import EverythingTestbed

LOG_TIMEOUT = 10.0
"""Seconds within which all counters and logs contain the packets of a visit that has ended."""


@dataclass(frozen=True)
class SiteCounts:
    """Counts of one site since its start."""

    outcomes: dict[str, Counter[str]]
    """Packets to and from the service by outcome, of each switch by name."""
    dropped: Counter[str]
    """Dropped packets by reason, over all switches."""
    refused: Counter[int]
    """Packets that AIFO did not admit, by the smallest remaining processing time of a band in microseconds."""
    dispatched: Counter[str]
    """Packets of the dispatcher by outcome."""
    real_server_bytes: dict[str, int]
    """Bytes of bodies that each real server sent to clients."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    """Lines of the balancers' access logs."""

    def __sub__(self, before: SiteCounts) -> SiteCounts:
        """Return the counts since an earlier reading."""
        return SiteCounts(
            {name: count - before.outcomes[name] for name, count in self.outcomes.items()},
            self.dropped - before.dropped,
            self.refused - before.refused,
            self.dispatched - before.dispatched,
            {name: count - before.real_server_bytes[name] for name, count in self.real_server_bytes.items()},
            self.requests[len(before.requests) :],
        )

    def as_json(self) -> dict[str, Any]:
        """Return the counts for JSON, with the sums over all switches as `total`."""
        total: Counter[str] = sum(self.outcomes.values(), Counter())
        return dict(vars(self)) | {"total": total}


def read(site: FleetSite) -> SiteCounts:
    """Read the counters and logs of a site."""
    outcomes: dict[str, Counter[str]] = {edge.name: Counter() for edge in edges(site.addresses)}
    dropped: Counter[str] = Counter()
    refused: Counter[int] = Counter()
    for sample in site.switch_metrics().samples:
        match sample.name:
            case "frontage_steering_packets_total":
                outcomes[sample.labels["device"]][sample.labels["outcome"]] += int(sample.value)
            case "frontage_dropped_packets_total":
                dropped[sample.labels["reason"]] += int(sample.value)
            case "frontage_aifo_dropped_packets_total":
                refused[int(sample.labels["min_rpt_us"])] += int(sample.value)
    dispatched = Counter[str]()
    if site.parts.steering:
        dispatched.update(site.dispatcher_metrics().by("outcome", "frontage_dispatcher_datagrams_total"))
    sent = {
        real.name: int(site.metrics(real.name).total("frontage_real_server_body_bytes_total"))
        for real in real_servers(site.addresses)
    }
    return SiteCounts(outcomes, dropped, refused, dispatched, sent, site.requests())


def read_all(testbed: EverythingTestbed) -> dict[str, SiteCounts]:
    """Read all sites, by location."""
    return {site.location: read(testbed.fleet_site(site.location)) for site in testbed.sites}


def since(testbed: EverythingTestbed, before: dict[str, SiteCounts], requests: int) -> dict[str, SiteCounts]:
    """Return the counts since an earlier reading, once the logs contain this number of requests. Raises NodeError."""
    deadline = time.monotonic() + LOG_TIMEOUT
    while True:
        counts = {location: count - before[location] for location, count in read_all(testbed).items()}
        seen = sum(len(count.requests) for count in counts.values())
        if seen >= requests:
            return counts
        if time.monotonic() > deadline:
            raise NodeError(f"the balancers' logs have {seen} of {requests} requests")
        time.sleep(0.1)
