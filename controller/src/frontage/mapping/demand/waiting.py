# SPDX-License-Identifier: Apache-2.0
"""The load latency of each site: how long handshakes wait there because it is busy.

Auspice (section 1.2.1) defines it as "load-induced latency measured locally at each server". The RTT of a handshake, as a replica
measures it, is the RTT of the path plus queueing: in the replica, in the host, and on the site's links. The minimum RTT of a client
network estimates the path (docs/mapping.md); the rest of a handshake's RTT is its wait. A site's load latency is the wait of the
network of its median handshake. So a client network that is itself congested does not count against the site.

A dispatcher hands each handshake to one controller, the first that asks. The waits are therefore collected in the store, for the
controller that computes placement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from frontage.mapping.compute.prefixes import Prefix
from frontage.mapping.compute.values import Sample

_WEIGHT = 0.5
"""Weight of the last epoch in the moving average."""


@dataclass(frozen=True, slots=True)
class HandshakeWait:
    """The total wait of the handshakes of one client network at one site."""

    network: str
    site: int
    microseconds: float
    handshakes: int


def handshake_waits(samples: Iterable[Sample], least: Mapping[tuple[Prefix, int], float]) -> Iterator[HandshakeWait]:
    """Return the waits of handshakes by network and site.

    Each sample is the mean RTT of ``count`` handshakes. ``least`` has the minimum RTTs that were known before; networks without
    one are left out.
    """
    totals: dict[tuple[Prefix, int], tuple[float, int]] = {}
    for sample in samples:
        cell = sample.prefix, sample.site
        if sample.source == "passive" and cell in least:
            waited, count = totals.get(cell, (0.0, 0))
            totals[cell] = waited + max(0.0, sample.rtt_us - least[cell]) * sample.count, count + sample.count
    return (HandshakeWait(str(prefix), site, waited, count) for (prefix, site), (waited, count) in totals.items())


class LoadLatency:
    """The load latency of every site, averaged over epochs."""

    def __init__(self) -> None:
        self.average: dict[int, float] = {}
        """Microseconds by site."""

    def update(self, waits: Iterable[HandshakeWait]) -> dict[int, float]:
        """Add the waits of one epoch, and return the averages. A site without handshakes has a wait of 0."""
        by_site: dict[int, list[HandshakeWait]] = {}
        for wait in waits:
            by_site.setdefault(wait.site, []).append(wait)
        for site in self.average.keys() | by_site.keys():
            current = _median(by_site.get(site, ()))
            before = self.average.get(site, current)
            self.average[site] = before + _WEIGHT * (current - before)
        return self.average


def _median(networks: Iterable[HandshakeWait]) -> float:
    """Return the mean wait in the network of the median handshake."""
    means = sorted((wait.microseconds / wait.handshakes, wait.handshakes) for wait in networks)
    half = sum(count for _, count in means) / 2
    for mean, count in means:
        half -= count
        if half <= 0:
            return mean
    return 0.0
