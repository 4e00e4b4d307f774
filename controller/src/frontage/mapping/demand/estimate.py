"""What is known of a service's demand, and how well: handshakes are samples, and of few of them much is chance.

A service that moved whenever some epoch's handshakes looked so would go back and forth between sites that are as good as each
other, or, while demand moves from one region to another, to a site between them. So a move has to shorten the way by more than its
standard error.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from frontage.mapping.placement.values import Flags, Sites, Times


@dataclass(frozen=True, slots=True)
class Seen:
    """Of one service, what one site sees."""

    rate: float
    """Handshakes a second."""
    counted: int
    """The handshakes that this rests on."""
    regions: Mapping[int, float]
    """Handshakes by region, when these last moved: shares, and how many they rest on."""


def demand(seen: Collection[Seen], rtts: Times) -> dict[int, float]:
    """Handshakes a second by region, as all sites see them: each one's regions, at its rate. Those of regions from
    which no RTT is known are taken to be spread like the others; none if there are no others."""
    found: dict[int, float] = {}
    lost = 0.0
    for one in seen:
        total = sum(one.regions.values())
        for region, count in one.regions.items():
            rate = one.rate * count / total
            if region < len(rtts) and np.isfinite(rtts[region]).any():
                found[region] = found.get(region, 0.0) + rate
            else:
                lost += rate
    known = sum(found.values())
    return {region: rate * (1 + lost / known) for region, rate in found.items() if rate > 0}


def with_updates(rates: Mapping[int, float], updates: float) -> dict[int, tuple[float, float]]:
    """Updates are nobody's: spread like the rest they change no region's weight."""
    total = sum(rates.values())
    return {region: (rate, updates * rate / total) for region, rate in rates.items()}


@dataclass(frozen=True, slots=True)
class Gain:
    """By how much a handshake's way gets shorter if a service moves: microseconds, of all handshakes on average."""

    mean: float
    error: float
    """Its standard error."""

    @property
    def certain(self) -> bool:
        """More than chance would do, as far as one standard error tells: were it two, few handshakes would move nothing."""
        return self.mean > self.error


def gain(seen: Collection[Seen], sites: Sites, active: Flags, wanted: Flags, updates: float = 0.0) -> Gain:
    """Of a move from the ``active`` sites to the ``wanted`` ones, RTTs and load latencies together; of ``updates`` a second what
    they wait at each site counts, too. Infinite where a region is to have a site that it can reach, and has none.

    A site's handshakes are Poisson's; how they divide into regions was seen in a sample of its own (`Seen.regions`).
    """
    distance = sites.rtts + sites.load_latency
    here, there = (np.where(those, distance, np.inf).min(axis=1) for those in (active, wanted))
    with np.errstate(invalid="ignore"):
        shorter = np.where(np.isfinite(here) | np.isfinite(there), here - there, 0.0).tolist()
    mean = updates * float(sites.load_latency[active].sum() - sites.load_latency[wanted].sum())
    variance = rate = 0.0
    for one in seen:
        total = sum(one.regions.values())
        shares = [(shorter[region], count / total) for region, count in one.regions.items() if region < len(shorter)]
        by = sum(way * share for way, share in shares)
        if math.isinf(by) or math.isnan(by):
            return Gain(by if by > 0 else -math.inf, 0.0)
        spread = sum(way * way * share for way, share in shares) - by * by
        rate += one.rate
        mean += one.rate * by
        variance += (one.rate * by) ** 2 / max(one.counted, 1) + one.rate**2 * max(spread, 0.0) / max(total, 1)
    return Gain(mean / rate, math.sqrt(variance) / rate) if rate else Gain(0.0, 0.0)
