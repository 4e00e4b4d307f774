"""How long handshakes wait at a site because it is busy, as its own replicas measure it (Auspice, section 1.2.1: "load-induced
latency measured locally at each server").

The RTT of a handshake, which a replica measures, is the path's and waiting: in the replica, in the host, in the site's links. The
least of a client's network is the path's (docs/mapping.md), and what handshakes take beyond that they waited. What the median
handshake's network has to wait is the site's; a network that is busy itself is seen by its own clients only.

A dispatcher tells each handshake to one controller, whichever asks first; so what they waited is in the store, for the one that
places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from frontage.mapping.compute.prefixes import Prefix
from frontage.mapping.compute.values import Sample

_SHARE = 0.5
"""Of the last epoch in the moving average."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Of all handshakes of one client's network at one site."""

    network: str
    site: int
    microseconds: float
    handshakes: int


def waits(samples: Iterable[Sample], least: Mapping[tuple[Prefix, int], float]) -> Iterator[Wait]:
    """Of handshakes' RTTs, each the mean of ``count``; those of networks whose ``least`` was known before."""
    found: dict[tuple[Prefix, int], tuple[float, int]] = {}
    for sample in samples:
        cell = sample.prefix, sample.site
        if sample.source == "passive" and cell in least:
            waited, count = found.get(cell, (0.0, 0))
            found[cell] = waited + max(0.0, sample.rtt_us - least[cell]) * sample.count, count + sample.count
    return (Wait(str(prefix), site, waited, count) for (prefix, site), (waited, count) in found.items())


class Waiting:
    """Of all sites."""

    def __init__(self) -> None:
        self.average: dict[int, float] = {}
        """Microseconds by site, over epochs."""

    def epoch(self, waited: Iterable[Wait]) -> dict[int, float]:
        """The average with this epoch in it; a site where nobody shook hands has not kept anybody waiting."""
        taken: dict[int, list[Wait]] = {}
        for one in waited:
            taken.setdefault(one.site, []).append(one)
        for site in self.average.keys() | taken.keys():
            news = _median(taken.get(site, ()))
            before = self.average.get(site, news)
            self.average[site] = before + _SHARE * (news - before)
        return self.average


def _median(networks: Iterable[Wait]) -> float:
    """What the median handshake's network waited on average."""
    means = sorted((one.microseconds / one.handshakes, one.handshakes) for one in networks)
    half = sum(count for _, count in means) / 2
    for mean, count in means:
        half -= count
        if half <= 0:
            return mean
    return 0.0
