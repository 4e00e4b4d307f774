# SPDX-License-Identifier: Apache-2.0
"""Estimates of a service's demand, and of what a move would gain.

Handshakes are samples, and a few of them say little. A service that moved whenever the handshakes of one epoch suggested it would
oscillate between sites that are equally good; while demand shifts from one region to another, it would stop at a site between them.
So a move must shorten the path by more than its standard error.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from frontage.mapping.placement.values import Flags, Sites, Times


@dataclass(frozen=True, slots=True)
class SiteDemand:
    """The demand for one service from the clients that enter at one site."""

    rate: float
    """Handshakes per second."""
    counted: int
    """Number of handshakes from which ``rate`` was computed."""
    regions: Mapping[int, float]
    """Handshakes by region in the last report that had regions. They give the shares, and their sum is the sample size."""


def demand_by_region(sites: Collection[SiteDemand], rtts: Times) -> dict[int, float]:
    """Return the handshakes per second by region, over all sites.

    Handshakes from regions without a known RTT are spread over the other regions in proportion to their demand. If there are no
    other regions, the result is empty.
    """
    rates: dict[int, float] = {}
    unknown = 0.0
    for site in sites:
        total = sum(site.regions.values())
        for region, count in site.regions.items():
            rate = site.rate * count / total
            if region < len(rtts) and np.isfinite(rtts[region]).any():
                rates[region] = rates.get(region, 0.0) + rate
            else:
                unknown += rate
    known = sum(rates.values())
    return {region: rate * (1 + unknown / known) for region, rate in rates.items() if rate > 0}


def add_updates(rates: Mapping[int, float], updates: float) -> dict[int, tuple[float, float]]:
    """Return (handshakes, updates) per second by region.

    Updates come from no particular region, so they are spread like the handshakes and leave the regions' weights as they are.
    """
    total = sum(rates.values())
    return {region: (rate, updates * rate / total) for region, rate in rates.items()}


@dataclass(frozen=True, slots=True)
class Gain:
    """The reduction in latency per handshake that a move brings: microseconds, averaged over all handshakes."""

    mean: float
    error: float
    """Standard error of ``mean``."""

    @property
    def is_significant(self) -> bool:
        """True if the gain exceeds one standard error. With two, services with few handshakes would never move."""
        return self.mean > self.error


def move_gain(demand: Collection[SiteDemand], sites: Sites, active: Flags, wanted: Flags, updates: float = 0.0) -> Gain:
    """Return the gain of a move from the ``active`` to the ``wanted`` sites, in RTT plus load latency.

    ``updates`` per second wait at every replica, and that wait counts too. The gain is infinite if a region that can reach none of
    the active sites can reach a wanted one. The handshakes of a site are taken as a Poisson process; their division into regions
    comes from a separate sample (`SiteDemand.regions`).
    """
    distance = sites.rtts + sites.load_latency
    before, after = (np.where(flags, distance, np.inf).min(axis=1) for flags in (active, wanted))
    with np.errstate(invalid="ignore"):
        saved = np.where(np.isfinite(before) | np.isfinite(after), before - after, 0.0).tolist()
    mean = updates * float(sites.load_latency[active].sum() - sites.load_latency[wanted].sum())
    variance = rate = 0.0
    for site in demand:
        total = sum(site.regions.values())
        shares = [(saved[region], count / total) for region, count in site.regions.items() if region < len(saved)]
        average = sum(time * share for time, share in shares)
        if math.isinf(average) or math.isnan(average):
            return Gain(average if average > 0 else -math.inf, 0.0)
        spread = sum(time * time * share for time, share in shares) - average * average
        rate += site.rate
        mean += site.rate * average
        variance += (site.rate * average) ** 2 / max(site.counted, 1) + site.rate**2 * max(spread, 0.0) / max(total, 1)
    return Gain(mean / rate, math.sqrt(variance) / rate) if rate else Gain(0.0, 0.0)
