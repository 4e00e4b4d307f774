"""What becomes of a service whose demand moves from one part of the network to another: the switches count it, placement
follows (docs/demand.md), steering follows placement, and clients are near it again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import numpy as np

from frontage.mapping.control.placer import policy_of
from frontage.mapping.settings import Placement
from frontage_testbed.nodes import NodeError

from .mappingstore import Placed
from .measure import BY_ARTEMIS, Sample, begin, end, sample
from .names import ZONE
from .scenarios import Published, Scenario
from .testbed import ArtemisTestbed

SHIFT = Scenario(
    "shift",
    "A service at one of three sites",
    ("ap-northeast-1", "eu-central-1", "us-east-2"),
    # Anycast leads everybody to the nearest site, which the service need not be at.
    Published((0, 0, 0), (0, 0, 0), 0.0, 0.0),
    {"Japan": "ap-northeast-1", "Germany": "eu-central-1", "Ohio": "us-east-2", "Ireland": "eu-west-1"},
)
FROM, TO, SELDOM = "Japan", "Germany", "Ohio"
"""Who asks most before and after, each a little while the other does; and who asks a little all the time."""
NEW = "Ireland"
"""Who is no client of the service yet (see `newcomer`)."""
EPOCH = 10.0
"""Seconds."""
SITES = range(1, 1 + len(SHIFT.sites))
PLACEMENT = {
    "epoch": EPOCH,
    "services": [{"name": ZONE}],
    "sites": [{"site": site, "capacity": 1000.0} for site in SITES],
    "min_replicas": 1,
    "max_replicas": 1,
    # A busy machine makes some ten handshakes an epoch, of all clients.
    "requests": 2,
    "share": 1.0,
    "drain": EPOCH,
}
OFTEN, EVERY = 4, 3
"""Connections of who asks most, for one of the other's; and rounds of these, for one of who asks seldom."""
PATIENCE = 25 * EPOCH
_POLICY = policy_of(Placement.model_validate(PLACEMENT))
ONE_SITE = int(_POLICY.needed(np.array([[True, False]]), np.array([[False, True]]))[0])
"""Handshakes that pay for a move from one site to another."""


@dataclass(frozen=True)
class Shift:
    """What was seen. Epochs are the controller's own, counted from the last that had ended when demand moved; set-up is
    in milliseconds.
    """

    before: frozenset[int]
    """Sites that got first flights then."""
    after: frozenset[int]
    shown: int
    """The epoch whose load reports first asked for another site."""
    decided: int
    """That at whose end the service was to move."""
    active: int
    """The last that had ended when first flights went to the new site."""
    far: tuple[float, ...]
    """Set-up of connections to where the service was."""
    near: tuple[float, ...]
    """Set-up of connections to where it is."""
    connections: int
    """None of them failed."""


def shift(testbed: ArtemisTestbed) -> Shift:
    """Ask from one client until the service is at its site; then from another until it is at that one's. Raises Failed
    if a single connection fails.
    """
    homes = {client: testbed.best_site(client) for client in (FROM, TO)}
    samples: list[Sample] = []

    def ask(client: str, until: Callable[[Placed], bool]) -> Placed:
        """Until that is so, of what placement did and the client's last connection."""
        began, other = time.monotonic(), TO if client == FROM else FROM
        for number in count():
            if time.monotonic() > began + PATIENCE:
                break
            seldom = (SELDOM,) if number % EVERY == 0 else ()
            clients = (*seldom, other, *(client,) * OFTEN)
            # All at once, for they wait for the network.
            asking = [(one, begin(testbed, one, *BY_ARTEMIS)) for one in clients]
            samples.extend(sample(testbed, one, "artemis", end(one, started)) for one, started in asking)
            placed = testbed.placed()
            if placed is not None and until(placed):
                return placed
        raise NodeError(f"the service did not come to {homes[client].place} after {PATIENCE:.0f} s: {testbed.placed()}")

    def settled(client: str) -> Callable[[Placed], bool]:
        return lambda placed: placed.serving == placed.wanted == {homes[client].id}

    # What a move costs is paid for, so that nothing but demand is waited for.
    paid = ask(FROM, lambda placed: settled(FROM)(placed) and placed.handshakes >= ONE_SITE)
    # Demand moves as an epoch begins. In the middle of one it is half here and half there, and nearest to a third site.
    before = ask(FROM, lambda placed: settled(FROM)(placed) and placed.epoch > paid.epoch)
    first = len(samples)
    # Nobody is cut off when the old site is out, and what is asked then is near.
    after = ask(TO, settled(TO))
    ask(TO, lambda _: samples[-1].site == homes[TO].place)
    steps = {step: epoch - before.epoch for step, epoch in after.move.items() if epoch is not None}
    theirs = [one for one in samples[first:] if one.client == TO]
    return Shift(
        before=before.serving,
        after=after.serving,
        **steps,
        far=tuple(one.setup for one in theirs if one.site == homes[FROM].place),
        near=tuple(one.setup for one in theirs if one.site == homes[TO].place),
        connections=len(samples),
    )
