"""What happens to clients when a site dies, and when packets between sites are lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .measure import Failed, by_artemis, sample
from .scenarios import Published, Scenario
from .testbed import ArtemisTestbed

RETRANSMISSION = 900.0
"""Milliseconds above a connection's best time from which on a first flight must have been sent again: the time-out is a
second before there is an RTT sample (RFC 9002, section 6.2.2: thrice 333 ms), less what times vary.
"""

DETOUR = Scenario(
    "detour",
    "A client whose best site is not the one that anycast leads to",
    ("eu-central-1", "eu-south-1", "us-east-2"),
    Published((0, 0, 0), (0, 0, 0), 1.0, 90.0),
    {"Sweden": "eu-north-1"},
)
"""No client is where a site is, so that the paths between sites can have a loss of their own."""


@dataclass(frozen=True)
class Try:
    """One attempt to connect."""

    event: str
    """What had happened; one of `LOST`, `ALIVE`, `DEAD` and `MAPPED`."""
    degree: int
    """X."""
    site: str | None
    """The place of the site that answered; None if none did."""
    setup: float
    """Milliseconds; 0 if none did."""


LOST = "1 % of the packets between sites are lost"
ALIVE = "the best site is up"
DEAD = "it has just failed"
MAPPED = "the next mapping is installed"
LOSS = 0.01


def attempt(testbed: ArtemisTestbed, client: str, degree: int, event: str) -> Try:
    """Connect once by Artemis."""
    try:
        met = sample(testbed, client, "artemis", by_artemis(testbed, client), redundancy=degree)
    except Failed:
        return Try(event, degree, None, 0.0)
    return Try(event, degree, met.site, met.setup)


def between_sites(share: float, sites: Sequence[str]) -> dict[tuple[str, str], float]:
    """A loss of this share of the packets on every path between two of these places."""
    return {(a, b): share for a in sites for b in sites if a < b}


def losses(testbed: ArtemisTestbed, client: str, tries: int) -> list[Try]:
    """Attempts with X = 1 and with X = 2, in a testbed whose paths between sites lose packets."""
    seen = []
    for degree in (1, 2):
        testbed.set_redundancy(degree)
        seen += [attempt(testbed, client, degree, LOST) for _ in range(tries)]
    return seen


def site_dies(testbed: ArtemisTestbed, client: str, tries: int) -> list[Try]:
    """A client's best site dies under X = 2: attempts before, attempts while the mapping still names it, and attempts
    with X = 1 after the next mapping.
    """
    dead = testbed.best_site(client).place
    testbed.set_redundancy(2)
    seen = [attempt(testbed, client, 2, ALIVE) for _ in range(tries)]
    testbed.site(dead).kill()
    seen += [attempt(testbed, client, 2, DEAD) for _ in range(tries)]
    testbed.remap(without={dead}, redundancy=1)
    return seen + [attempt(testbed, client, 1, MAPPED) for _ in range(tries)]


def late(tries: Sequence[Try]) -> int:
    """How many attempts waited for a retransmission. The time that the fastest took is what one takes without."""
    times = [t.setup for t in tries if t.site is not None]
    return sum(time > min(times) + RETRANSMISSION for time in times)


def unmet(tries: Sequence[Try]) -> list[str]:
    """Of what redundancy is to bring, what it did not, in words."""
    missed = []
    if failed := sum(t.site is None for t in tries if t.degree == 2):
        missed.append(f"{failed} handshakes failed at X = 2")
    if waited := late([t for t in tries if t.event == LOST and t.degree == 2]):
        missed.append(f"{waited} handshakes waited for a retransmission at X = 2")
    if failed := sum(t.site is None for t in tries if t.event == MAPPED):
        missed.append(f"{failed} handshakes failed after the next mapping")
    return missed
