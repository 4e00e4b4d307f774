# SPDX-License-Identifier: Apache-2.0
"""A DHT that replicates by popularity, as Codons does on Beehive (Ramasubramanian and Sirer, NSDI and SIGCOMM 2004).

Servers and names have ids of digits of base b. A name at level i is at the servers whose ids have its first i digits: level 0 is
everywhere, the last level at the home and its successors alone. The closed form says which share of the names each level has, so that
a lookup takes C hops on average with as few replicas as possible.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
import numpy.typing as npt

from frontage_sim.wide.latencies import Array
from frontage_sim.wide.places import Places

Flags = npt.NDArray[np.bool_]
_BITS = 64


class Dht:
    def __init__(self, guids: tuple[str, ...], places: Places, base: int, least: int, rng: np.random.Generator | None = None):
        """``least``: replicas of every name. ``rng`` draws who is in routing tables; None: the nearest that may be."""
        self.base, self.least = base, least
        servers = len(places.servers)
        self.levels = max(1, math.ceil(math.log(servers) / math.log(base) - 1e-9))
        """K: hops to the home of a name that is nowhere else."""
        order = np.argsort([_id(f"server {city}") for city in places.servers], kind="stable").argsort().tolist()
        # Evenly spaced, as if servers had many ids each: else the one with the longest arc is full long before the others.
        nodes = [place * (1 << _BITS) // servers for place in order]
        self._shared = np.array([[self._digits(_id(guid), node) for node in nodes] for guid in guids])
        """[name, server]: the first digits that they have in common, at most K."""
        gaps = np.array([[(node - _id(guid)) % (1 << _BITS) for node in nodes] for guid in guids], np.float64)
        self._succession = gaps.argsort(axis=1, kind="stable")
        """[name, place]: servers in ring order from the name on; the first is its home."""
        self._preferred = places.between if rng is None else rng.random(places.between.shape)
        """[server, server]: of those that may stand in a place of the first's routing table, the least does."""

    def replicate(self, reads: Array, alpha: float, replicas: float) -> Flags:
        """[name, server], with so many replicas of a name on average: C is what that takes."""
        ranks = np.empty(len(reads), np.int64)
        ranks[np.argsort(-reads, kind="stable")] = np.arange(len(reads))
        low, high = 0.0, float(self.levels)
        for _ in range(50):
            hops = (low + high) / 2
            if self.at(ranks, alpha, hops).sum(axis=1).mean() > replicas:
                low = hops
            else:
                high = hops
        return self.at(ranks, alpha, high)

    def at(self, ranks: npt.NDArray[np.int64], alpha: float, hops: float) -> Flags:
        """[name, server] by the names' ranks of popularity."""
        ends = np.array(shares(self.base, self.levels, alpha, hops)) * len(ranks)
        level = np.searchsorted(ends, ranks, side="right")
        level = np.minimum(level, self.levels)
        chosen: Flags = self._shared >= level[:, None]
        home = np.zeros_like(chosen)
        np.put_along_axis(home, self._succession[:, : self.least], True, axis=1)
        last = (level == self.levels)[:, None]
        few = chosen.sum(axis=1, keepdims=True) < self.least
        return np.where(last, home, np.where(few, chosen | home, chosen))

    def route(self, name: int, entry: int, chosen: Flags) -> list[int]:
        """Who the lookup is sent on to by ``entry``, and so on; the last one has the name. Each hop has one digit more in common with
        the name; which such server, routing tables say: the nearest, as Pastry has it, or any."""
        way: list[int] = []
        at = entry
        while not chosen[at]:
            closer = np.flatnonzero(self._shared[name] > self._shared[name, at])
            at = int(closer[self._preferred[at, closer].argmin()]) if len(closer) else int(self._succession[name, 0])
            way.append(at)
        return way

    def _digits(self, a: int, b: int) -> int:
        """In common, at most K."""
        bits = _BITS - (a ^ b).bit_length()
        return min(self.levels, int(bits / math.log2(self.base)))


def shares(base: int, levels: int, alpha: float, hops: float) -> list[float]:
    """Beehive's closed form: the share of names, most popular first, that are at level i or below, for i < K.

    x_i = (d^i (K' - C) / (1 + d + ... + d^(K' - 1)))^(1 / (1 - alpha)) with d = b^((1 - alpha) / alpha), where K' counts the levels
    whose share is less than all.
    """
    d = base ** ((1 - alpha) / alpha)
    for below in range(levels, 0, -1):
        total = sum(d**i for i in range(below))
        found = [(d**i * max(0.0, below - hops) / total) ** (1 / (1 - alpha)) for i in range(below)]
        if found[-1] <= 1:
            return [*found, *[1.0] * (levels - below)]
    return [1.0] * levels


def _id(text: str) -> int:
    return int.from_bytes(hashlib.sha1(text.encode()).digest()[: _BITS // 8], "big")
