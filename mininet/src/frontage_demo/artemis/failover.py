"""What happens to a client where the controllers compute the mapping: it is served where it came in, then at the site
that measurements show to be the best for it, and when that one dies, at the next best.
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
"""Seconds from one attempt to the next while a site is dead."""
ROUND = 0.5
"""Seconds that a round of the controllers' may take beside the interval between two."""
PATIENCE = 120.0
"""Seconds after which what has not come does not come."""


@dataclass(frozen=True)
class Failover:
    """What a client met. Sites are places."""

    interval: float
    """Seconds between two computations of the mapping."""
    entered: str
    """Where anycast leads it."""
    first: str
    """Who answered when nothing was measured."""
    best: str
    """Who is nearest."""
    learned: float
    """Seconds until that one answered."""
    rtts: tuple[Rtt, ...]
    """What was measured by then."""
    distances: Mapping[str, float]
    """Milliseconds from the client to each site and back, in the order of the sites' numbers."""
    leader: str
    """Whose controller computed when the best site died."""
    heir: str
    """Who is nearest of the others."""
    outage: float
    """Seconds from the death to this one's first answer."""


def failover(testbed: ArtemisTestbed, client: str) -> Failover:
    """Connect, in a testbed that is new, until the best site answers; kill it; connect until the next one answers."""
    place = testbed.scenario.clients[client]
    best, heir, *_ = testbed.nearest(place)
    began = time.monotonic()
    first = site = _answering(testbed, client)
    while site != best:
        _in_time(began, f"no mapping leads {client} to {best}")
        site = _answering(testbed, client)
    learned = time.monotonic() - began
    number = testbed.site(best).addresses.id

    def measured() -> bool:
        return any(rtt.site == number and rtt.source == "passive" for rtt in testbed.rtts(client))

    _until(measured, f"{best} has measured no handshake of {client}'s")
    rtts, leader = tuple(testbed.rtts(client)), testbed.leader()
    died = time.monotonic()
    testbed.site(best).kill()
    outage = _outage(testbed, client, heir, died)
    distances = {site.place: testbed.latencies.rtt(place, site.place) for site in testbed.sites}
    return Failover(INTERVAL, testbed.routes[place], first, best, learned, rtts, distances, leader, heir, outage)


def _answering(testbed: ArtemisTestbed, client: str) -> str:
    return sample(testbed, client, "artemis", by_artemis(testbed, client)).site


def _outage(testbed: ArtemisTestbed, client: str, heir: str, died: float) -> float:
    """Seconds from then until a connection is set up there. New ones are begun all the time, and none waits for
    another: a first flight that a dead site gets is answered by nobody, or when it is sent again.
    """
    begun: dict[subprocess.Popen[bytes], float] = {}
    try:
        while True:
            _in_time(died, f"no mapping leads {client} to {heir}")
            begun[begin(testbed, client, *BY_ARTEMIS)] = time.monotonic() - died
            time.sleep(EVERY)
            for done in [one for one in begun if one.poll() is not None]:
                since = begun.pop(done)
                with suppress(Failed):
                    answer = sample(testbed, client, "artemis", end(client, done))
                    if answer.site == heir:
                        return since + answer.setup / 1e3
    finally:
        for one in begun:
            one.kill()
            one.wait()


def _until(condition: Callable[[], bool], otherwise: str) -> None:
    began = time.monotonic()
    while not condition():
        _in_time(began, otherwise)
        time.sleep(EVERY)


def _in_time(began: float, otherwise: str) -> None:
    if time.monotonic() > began + PATIENCE:
        raise NodeError(f"{otherwise} after {PATIENCE:.0f} s")


def unmet(seen: Failover) -> list[str]:
    """Of what the mapping is to do, what it did not, in words."""
    missed = []
    if seen.first != seen.entered:
        missed.append(f"a client of whom nothing was known came in at {seen.entered} and was served at {seen.first}")
    if seen.outage > seen.interval + ROUND:
        late = f"the next best site answered {seen.outage:.1f} s after the best one's death"
        missed.append(f"{late}; the mapping's interval is {seen.interval:g} s")
    return missed
