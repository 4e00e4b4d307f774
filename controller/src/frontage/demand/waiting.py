"""How long handshakes wait at a site because it is busy, as its own replicas measure it (Auspice, section 1.2.1: "load-induced
latency measured locally at each server").

The RTT of a handshake, which a replica measures, is the path's and waiting: in the replica, in the host, in the site's links. The
least of a client's network is the path's (docs/mapping.md), and what handshakes take beyond that they waited. What the median
handshake's network has to wait is the site's; a network that is busy itself is seen by its own clients only.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from frontage.enduser.engine import Engine
from frontage.enduser.latencystore import Sample
from frontage.enduser.prefixes import Prefix

_SHARE = 0.5
"""Of the last epoch in the moving average."""


class Waiting:
    """Of all sites."""

    def __init__(self) -> None:
        self._taken: dict[int, dict[Prefix, tuple[float, int]]] = {}
        """By site and client's network: microseconds of all handshakes of this epoch, and how many these are."""
        self.average: dict[int, float] = {}
        """Microseconds by site, over epochs."""

    def take(self, samples: Iterable[Sample], engine: Engine) -> None:
        """Handshakes' RTTs, each the mean of ``count``; those of networks whose least is known."""
        column = {int(site): place for place, site in enumerate(engine.sites)}
        rows, own = engine.latency.cover.rows, engine.latency.own
        for sample in samples:
            row, place = rows.get(sample.prefix), column.get(sample.site)
            if sample.source != "passive" or row is None or place is None or np.isnan(own[row, place]):
                continue
            networks = self._taken.setdefault(sample.site, {})
            waited, count = networks.get(sample.prefix, (0.0, 0))
            waited += max(0.0, sample.rtt_us - float(own[row, place])) * sample.count
            networks[sample.prefix] = waited, count + sample.count

    def epoch(self) -> dict[int, float]:
        """The average with this epoch in it; a site where nobody shook hands has not kept anybody waiting."""
        found = {}
        for site in self.average.keys() | self._taken.keys():
            news = _median(self._taken.get(site, {}).values())
            before = self.average.get(site, news)
            found[site] = before + _SHARE * (news - before)
        self.average, self._taken = found, {}
        return found


def _median(networks: Iterable[tuple[float, int]]) -> float:
    """What the median handshake's network waited on average: of (microseconds of all, handshakes)."""
    means = sorted((waited / count, count) for waited, count in networks)
    half = sum(count for _, count in means) / 2
    for mean, count in means:
        half -= count
        if half <= 0:
            return mean
    return 0.0
