# SPDX-License-Identifier: Apache-2.0
"""Connecting to who moves: how often a lookup is stale, and how long it takes to reach him all the same (Auspice, section 2.2.3).

The client looks up the address and connects by two round trips. An address that has been left is refused after one of them or two,
with equal chances, and then is looked up again. A lookup gives the move before the last that has reached the replica.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from frontage_sim.wide.latencies import Array
from frontage_sim.wide.scenario import Mobility, Wide

_MOVES = 64
"""Moves that are drawn on either side of a connection's start; a connection that needs more is cut off there."""


def run(settings: Wide) -> pl.DataFrame:
    """A row for each rate of moves: what was simulated, and what `expected` says."""
    assert isinstance(settings, Mobility)
    rows = []
    for rate in settings.rates:
        rng = np.random.default_rng([settings.seed, 6, round(1e9 * rate)])
        took, first = connect(rate, settings, rng)
        stale, mean = expected(rate, settings)
        rows.append(
            {
                "rate": rate,
                "mean": float(took.mean()),
                "p10": float(np.quantile(took, 0.1)),
                "p90": float(np.quantile(took, 0.9)),
                "stale": float(1 - first.mean()),
                "expected": mean,
                "expected_stale": stale,
            }
        )
    return pl.DataFrame(rows)


def connect(rate: float, settings: Mobility, rng: np.random.Generator) -> tuple[Array, Array]:
    """Seconds until connected, and whether the first address was right, of each connection. Moves are a Poisson process."""
    number = settings.samples
    # Moves around time 0, when the client begins: the last before and those after.
    after = rng.exponential(1 / rate, (number, _MOVES)).cumsum(axis=1)
    before = -rng.exponential(1 / rate, (number, _MOVES)).cumsum(axis=1)[:, ::-1]
    moves = np.concatenate([before, after], axis=1)
    now, done = np.zeros(number), np.zeros(number, np.bool_)
    first = np.zeros(number, np.bool_)
    for attempt in range(_MOVES):
        # The replica answers half-way through the lookup, with the moves that had reached it.
        known = (moves <= (now + settings.lookup / 2 - settings.propagation)[:, None]).sum(axis=1)
        asked = now + settings.lookup + settings.rtt / 2
        # He is there if he has not moved on by the time that the client's packet comes, in the first round trip or in the second.
        there = (moves <= asked[:, None]).sum(axis=1) == known
        second = rng.random(number) < 0.5
        fails = ~there
        now = np.where(done, now, now + settings.lookup + np.where(fails & ~second, 1, 2) * settings.rtt)
        if attempt == 0:
            first = there.copy()
        done |= there
        if done.all():
            break
    return now, first.astype(np.float64)


def expected(rate: float, settings: Mobility) -> tuple[float, float]:
    """The share of stale lookups and the mean time to connect, by an analytical model (the paper's is in a report of its own).

    A lookup is stale if he moved in the time from d before the replica answered until the client's packet comes to where he was:
    in W = d + l / 2 + RTT / 2, so with probability q = 1 - exp(-w W). From a moment drawn at random until there has been no move for W
    it takes (exp(w W) - 1) / w - W on average, and the client finds out by an attempt that begins up to one attempt later, half of
    one on average: of a lookup and 1.5 round trips.
    """
    window = settings.propagation + settings.lookup / 2 + settings.rtt / 2
    stale = 1 - float(np.exp(-rate * window))
    wasted = (float(np.exp(rate * window)) - 1) / rate - window + stale * (settings.lookup + 1.5 * settings.rtt) / 2
    return stale, settings.lookup + 2 * settings.rtt + wasted
