# SPDX-License-Identifier: Apache-2.0
"""Connecting to a mobile host: how often a lookup is stale, and how long the connection takes (Auspice, section 2.2.3).

The client looks up the address and connects, which takes two round trips. An old address is refused after one or two round trips, with
equal probability; the client then repeats the lookup. A lookup returns the address after the last move that has reached the replica.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from frontage_sim.auspice.latency_model import Array
from frontage_sim.auspice.scenario import AuspiceScenario, Mobility

_MAX_MOVES = 64
"""Number of moves drawn before and after the start of a connection. A connection that needs more attempts ends there."""


def run(settings: AuspiceScenario) -> pl.DataFrame:
    """Return a row for each rate of moves: the simulated durations, and those of the analytical model."""
    assert isinstance(settings, Mobility)
    rows = []
    for rate in settings.rates:
        rng = np.random.default_rng([settings.seed, 6, round(1e9 * rate)])
        durations, is_first_right = connect(rate, settings, rng)
        stale, mean = predict(rate, settings)
        rows.append(
            {
                "rate": rate,
                "mean": float(durations.mean()),
                "p10": float(np.quantile(durations, 0.1)),
                "p90": float(np.quantile(durations, 0.9)),
                "stale": float(1 - is_first_right.mean()),
                "expected": mean,
                "expected_stale": stale,
            }
        )
    return pl.DataFrame(rows)


def connect(rate: float, settings: Mobility, rng: np.random.Generator) -> tuple[Array, Array]:
    """Simulate connections to a host that moves by a Poisson process.

    Returns for each connection the seconds until it is established, and 1 if the first address was right, else 0.
    """
    number = settings.samples
    # The client starts at time 0.
    after = rng.exponential(1 / rate, (number, _MAX_MOVES)).cumsum(axis=1)
    before = -rng.exponential(1 / rate, (number, _MAX_MOVES)).cumsum(axis=1)[:, ::-1]
    moves = np.concatenate([before, after], axis=1)
    now, is_connected = np.zeros(number), np.zeros(number, np.bool_)
    is_first_right = np.zeros(number, np.bool_)
    for attempt in range(_MAX_MOVES):
        # The replica answers in the middle of the lookup, and knows the moves that have reached it.
        known = (moves <= (now + settings.lookup / 2 - settings.propagation)[:, None]).sum(axis=1)
        arrival = now + settings.lookup + settings.rtt / 2
        # The address is right if the host has not moved again before the client's first packet arrives.
        is_right = (moves <= arrival[:, None]).sum(axis=1) == known
        is_second = rng.random(number) < 0.5
        is_refused = ~is_right
        now = np.where(is_connected, now, now + settings.lookup + np.where(is_refused & ~is_second, 1, 2) * settings.rtt)
        if attempt == 0:
            is_first_right = is_right.copy()
        is_connected |= is_right
        if is_connected.all():
            break
    return now, is_first_right.astype(np.float64)


def predict(rate: float, settings: Mobility) -> tuple[float, float]:
    """Return the share of stale lookups and the mean time to connect by an analytical model. The paper's own model is in another report.

    A lookup is stale if the host moves during the window W = d + l / 2 + RTT / 2: from d before the replica's answer until the client's
    packet reaches the old address. Its probability is q = 1 - exp(-w W). From a random moment until the end of the first window without a
    move, it takes (exp(w W) - 1) / w - W on average. The client notices with an attempt that begins half an attempt later on average; an
    attempt takes a lookup and 1.5 round trips.
    """
    window = settings.propagation + settings.lookup / 2 + settings.rtt / 2
    stale = 1 - float(np.exp(-rate * window))
    wasted = (float(np.exp(rate * window)) - 1) / rate - window + stale * (settings.lookup + 1.5 * settings.rtt) / 2
    return stale, settings.lookup + 2 * settings.rtt + wasted
