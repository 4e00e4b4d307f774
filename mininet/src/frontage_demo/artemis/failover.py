# SPDX-License-Identifier: Apache-2.0
"""A client under a mapping that the controllers compute.

The site where it enters serves it first, then the site that measurements show to be best, and when that one fails, the
next best.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from frontage_testbed.nodes import NodeError

from .mappingstore import Rtt
from .measure import BY_ARTEMIS, Failed, begin, by_artemis, end, sample
from .siteconfig import INTERVAL
from .testbed import ArtemisTestbed

EVERY = 0.1
"""Seconds between two attempts while a site is down."""
ROUND = 0.5
"""Maximum seconds of the controllers' computation, in addition to the interval between two."""
MAPPING_TIMEOUT = 120.0
"""Seconds to wait for a mapping."""


@dataclass(frozen=True)
class Failover:
    """A client's observations. Sites are locations."""

    interval: float
    """Seconds between two computations of the mapping."""
    entered: str
    """Anycast's site for the client."""
    first: str
    """The site that answered before any measurement."""
    best: str
    """The nearest site."""
    learned: float
    """Seconds until the nearest site answered."""
    rtts: tuple[Rtt, ...]
    """The store's measurements at that time."""
    distances: Mapping[str, float]
    """Round-trip times in ms between the client and each site, in the order of the sites' numbers."""
    leader: str
    """The site whose controller computed the mapping when the best site failed."""
    heir: str
    """The nearest of the other sites."""
    outage: float
    """Seconds from the failure to the first answer of the next site."""


def failover(testbed: ArtemisTestbed, client: str) -> Failover:
    """Connect in a new testbed until the best site answers; kill it; connect until the next best one answers."""
    location = testbed.scenario.clients[client]
    best, heir, *_ = testbed.nearest(location)
    began = time.monotonic()
    first = site = _answering(testbed, client)
    while site != best:
        _check_deadline(began, f"no mapping leads {client} to {best}")
        site = _answering(testbed, client)
    learned = time.monotonic() - began
    number = testbed.site(best).addresses.id

    def measured() -> bool:
        return any(rtt.site == number and rtt.source == "passive" for rtt in testbed.rtts(client))

    _wait_until(measured, f"{best} has measured no handshake of {client}")
    rtts, leader = tuple(testbed.rtts(client)), testbed.leader()
    died = time.monotonic()
    testbed.site(best).kill()
    outage = _outage(testbed, client, heir, died)
    distances = {site.location: testbed.latencies.rtt(location, site.location) for site in testbed.sites}
    return Failover(INTERVAL, testbed.routes[location], first, best, learned, rtts, distances, leader, heir, outage)


def _answering(testbed: ArtemisTestbed, client: str) -> str:
    return sample(testbed, client, "artemis", by_artemis(testbed, client)).site


def _outage(testbed: ArtemisTestbed, client: str, heir: str, died: float) -> float:
    """Return the seconds from the failure until a connection to `heir` is set up.

    Attempts overlap: a first flight to a dead site gets no answer, or only after its retransmission.
    """
    begun: dict[subprocess.Popen[bytes], float] = {}
    try:
        while True:
            _check_deadline(died, f"no mapping leads {client} to {heir}")
            begun[begin(testbed, client, *BY_ARTEMIS)] = time.monotonic() - died
            time.sleep(EVERY)
            for done in [process for process in begun if process.poll() is not None]:
                since = begun.pop(done)
                with suppress(Failed):
                    answer = sample(testbed, client, "artemis", end(client, done))
                    if answer.site == heir:
                        return since + answer.setup / 1e3
    finally:
        for process in begun:
            process.kill()
            process.wait()


def _wait_until(condition: Callable[[], bool], message: str) -> None:
    began = time.monotonic()
    while not condition():
        _check_deadline(began, message)
        time.sleep(EVERY)


def _check_deadline(began: float, message: str) -> None:
    if time.monotonic() > began + MAPPING_TIMEOUT:
        raise NodeError(f"{message} after {MAPPING_TIMEOUT:.0f} s")


def unmet(seen: Failover) -> list[str]:
    """Return a message for each goal of the mapping that was missed."""
    missed = []
    if seen.first != seen.entered:
        missed.append(f"an unknown client entered at {seen.entered} and was served at {seen.first}")
    if seen.outage > seen.interval + ROUND:
        late = f"the next best site answered {seen.outage:.1f} s after the best one failed"
        missed.append(f"{late}; the mapping interval is {seen.interval:g} s")
    return missed
