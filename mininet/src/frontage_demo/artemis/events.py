# SPDX-License-Identifier: Apache-2.0
"""Connection attempts when a site fails, and when packets between sites are lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .measure import Failed, by_artemis, sample
from .scenarios import Published, Scenario
from .testbed import ArtemisTestbed

RETRANSMISSION = 900.0
"""Milliseconds above a connection's best time that prove a retransmitted first flight.

Without an RTT sample the timeout is a second (RFC 9002, section 6.2.2: three times 333 ms); this subtracts variation.
"""

DETOUR = Scenario(
    "detour",
    "A client whose best site is not the one that anycast leads to",
    ("eu-central-1", "eu-south-1", "us-east-2"),
    Published((0, 0, 0), (0, 0, 0), 1.0, 90.0),
    {"Sweden": "eu-north-1"},
)
"""No client is at a site's location, so that only the paths between sites lose packets."""


@dataclass(frozen=True)
class Try:
    """One attempt to connect."""

    event: str
    """The state of the testbed: `LOST`, `ALIVE`, `DEAD` or `MAPPED`."""
    degree: int
    """X, the number of sites that get the first flight."""
    site: str | None
    """The location of the site that answered; None if the attempt failed."""
    setup: float
    """Milliseconds; 0 if the attempt failed."""


LOST = "1 % of the packets between sites are lost"
ALIVE = "the best site is up"
DEAD = "it has just failed"
MAPPED = "the next mapping is installed"
LOSS = 0.01


def attempt(testbed: ArtemisTestbed, client: str, degree: int, event: str) -> Try:
    """Connect once by Artemis, and return the result."""
    try:
        met = sample(testbed, client, "artemis", by_artemis(testbed, client), redundancy=degree)
    except Failed:
        return Try(event, degree, None, 0.0)
    return Try(event, degree, met.site, met.setup)


def between_sites(share: float, sites: Sequence[str]) -> dict[tuple[str, str], float]:
    """Return this loss rate for every path between two of these locations."""
    return {(a, b): share for a in sites for b in sites if a < b}


def losses(testbed: ArtemisTestbed, client: str, tries: int) -> list[Try]:
    """Return attempts with X = 1 and with X = 2 in a testbed whose paths between sites lose packets."""
    seen = []
    for degree in (1, 2):
        testbed.set_redundancy(degree)
        seen += [attempt(testbed, client, degree, LOST) for _ in range(tries)]
    return seen


def site_dies(testbed: ArtemisTestbed, client: str, tries: int) -> list[Try]:
    """Kill a client's best site, and return attempts in three states.

    These are X = 2 before the failure, X = 2 while the mapping still contains the site, and X = 1 after the next mapping.
    """
    dead = testbed.best_site(client).location
    testbed.set_redundancy(2)
    seen = [attempt(testbed, client, 2, ALIVE) for _ in range(tries)]
    testbed.site(dead).kill()
    seen += [attempt(testbed, client, 2, DEAD) for _ in range(tries)]
    testbed.remap(without={dead}, redundancy=1)
    return seen + [attempt(testbed, client, 1, MAPPED) for _ in range(tries)]


def late(tries: Sequence[Try]) -> int:
    """Return how many attempts waited for a retransmission, compared with the fastest one."""
    times = [t.setup for t in tries if t.site is not None]
    return sum(time > min(times) + RETRANSMISSION for time in times)


def unmet(tries: Sequence[Try]) -> list[str]:
    """Return a message for each goal of redundancy that was missed."""
    missed = []
    if failed := sum(t.site is None for t in tries if t.degree == 2):
        missed.append(f"{failed} handshakes failed at X = 2")
    if waited := late([t for t in tries if t.event == LOST and t.degree == 2]):
        missed.append(f"{waited} handshakes waited for a retransmission at X = 2")
    if failed := sum(t.site is None for t in tries if t.event == MAPPED):
        missed.append(f"{failed} handshakes failed after the next mapping")
    return missed
