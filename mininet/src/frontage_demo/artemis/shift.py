# SPDX-License-Identifier: Apache-2.0
"""A service whose demand moves from one part of the network to another.

The switches count the demand, placement follows it (docs/demand.md), steering follows placement, and the service is near
its clients again.
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
    ("ap-northeast-1", "eu-central-1", "sa-east-1"),
    # The third site is far from the other two. Otherwise it would be the best one for an epoch in which demand moves.
    # Anycast leads every client to the nearest site, where the service may not be.
    Published((0, 0, 0), (0, 0, 0), 0.0, 0.0),
    {"Japan": "ap-northeast-1", "Germany": "eu-central-1", "Brazil": "sa-east-1", "Ireland": "eu-west-1"},
)
FROM, TO, SELDOM = "Japan", "Germany", "Brazil"
"""Clients with most requests before and after the shift (each sends few while the other sends most), and a client with
few requests all the time.
"""
NEW = "Ireland"
"""A client that does not use the service yet (see `newcomer`)."""
EPOCH = 10.0
"""Seconds per epoch of placement."""
SITES = range(1, 1 + len(SHIFT.sites))
PLACEMENT = {
    "epoch": EPOCH,
    "services": [{"name": ZONE}],
    "sites": [{"site": site, "capacity": 1000.0} for site in SITES],
    "min_replicas": 1,
    "max_replicas": 1,
    # A busy machine makes about ten handshakes per epoch, over all clients.
    "requests": 2,
    "share": 1.0,
    "drain": EPOCH,
}
OFTEN, EVERY = 4, 3
"""Connections of the busiest client for one of the other, and rounds of these for one of the third."""
PLACEMENT_TIMEOUT = 25 * EPOCH
_POLICY = policy_of(Placement.model_validate(PLACEMENT))
ONE_SITE = int(_POLICY.needed(np.array([[True, False]]), np.array([[False, True]]))[0])
"""Handshakes that justify a move from one site to another."""


@dataclass(frozen=True)
class Shift:
    """The observations. Epochs are the controller's, counted from the last one that had ended before demand moved; set-up
    times are in ms.
    """

    before: frozenset[int]
    """Sites that got first flights before the shift."""
    after: frozenset[int]
    shown: int
    """The first epoch whose load reports asked for another site."""
    decided: int
    """The epoch at whose end placement decided to move the service."""
    active: int
    """The last epoch that had ended when first flights went to the new site."""
    far: tuple[float, ...]
    """Set-up times of connections to the old site."""
    near: tuple[float, ...]
    """Set-up times of connections to the new site."""
    connections: int
    """Number of connections, all of which succeeded."""


def shift(testbed: ArtemisTestbed) -> Shift:
    """Send requests mainly from one client until the service is at its site, then from another until it has moved there.

    Raises Failed if a connection fails.
    """
    homes = {client: testbed.best_site(client) for client in (FROM, TO)}
    samples: list[Sample] = []

    def request_until(client: str, condition: Callable[[Placed], bool]) -> Placed:
        """Send requests mainly from `client` until placement fulfils the condition."""
        began, other = time.monotonic(), TO if client == FROM else FROM
        for number in count():
            if time.monotonic() > began + PLACEMENT_TIMEOUT:
                break
            seldom = (SELDOM,) if number % EVERY == 0 else ()
            clients = (*seldom, other, *(client,) * OFTEN)
            # In parallel, because they wait for the network.
            running = [(name, begin(testbed, name, *BY_ARTEMIS)) for name in clients]
            samples.extend(sample(testbed, name, "artemis", end(name, started)) for name, started in running)
            placed = testbed.placed()
            if placed is not None and condition(placed):
                return placed
        raise NodeError(f"the service did not move to {homes[client].location} in {PLACEMENT_TIMEOUT:.0f} s: {testbed.placed()}")

    def settled(client: str) -> Callable[[Placed], bool]:
        return lambda placed: placed.serving == placed.wanted == {homes[client].id}

    # Accumulate enough handshakes for a move first, so that the next one depends on demand only.
    paid = request_until(FROM, lambda placed: settled(FROM)(placed) and placed.handshakes >= ONE_SITE)
    # Demand moves soon after the beginning of an epoch.
    before = request_until(FROM, lambda placed: settled(FROM)(placed) and placed.epoch > paid.epoch)
    first = len(samples)
    # The old site serves its connections until they end; new requests reach the near site.
    after = request_until(TO, settled(TO))
    request_until(TO, lambda _: samples[-1].site == homes[TO].location)
    steps = {step: epoch - before.epoch for step, epoch in after.move.items() if epoch is not None}
    theirs = [reply for reply in samples[first:] if reply.client == TO]
    return Shift(
        before=before.serving,
        after=after.serving,
        **steps,
        far=tuple(reply.setup for reply in theirs if reply.site == homes[FROM].location),
        near=tuple(reply.setup for reply in theirs if reply.site == homes[TO].location),
        connections=len(samples),
    )
