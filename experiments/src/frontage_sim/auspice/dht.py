# SPDX-License-Identifier: Apache-2.0
"""A DHT that replicates by popularity, like Codons on Beehive (Ramasubramanian and Sirer, NSDI and SIGCOMM 2004).

Servers and names have ids of digits in base b. A name at level i is replicated on all servers whose ids share its first i digits: level 0
means all servers, the last level only the name's home server and its successors. Beehive's closed form gives the share of names at each
level such that a lookup takes C hops on average with as few replicas as possible.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
import numpy.typing as npt

from frontage_sim.auspice.latency_model import Array
from frontage_sim.auspice.topology import Topology

Flags = npt.NDArray[np.bool_]
_ID_BITS = 64


class Dht:
    """The servers of a DHT, the placement of names, and the routes of lookups."""

    def __init__(
        self, guids: tuple[str, ...], topology: Topology, base: int, min_replicas: int, rng: np.random.Generator | None = None
    ):
        """``rng`` fills the routing tables at random; without it, they contain the nearest eligible server, as in Pastry."""
        self.base, self.min_replicas = base, min_replicas
        servers = len(topology.servers)
        self.levels = max(1, math.ceil(math.log(servers) / math.log(base) - 1e-9))
        """K: hops to the home server of a name without other replicas."""
        order = np.argsort([_id(f"server {city}") for city in topology.servers], kind="stable").argsort().tolist()
        # Ids are evenly spaced, as if each server had many ids. Otherwise, the server with the longest arc fills up long before the others.
        server_ids = [position * (1 << _ID_BITS) // servers for position in order]
        self._common_digits = np.array([[self._count_common_digits(_id(guid), server) for server in server_ids] for guid in guids])
        """[name, server]: leading digits that both ids share, at most K."""
        gaps = np.array([[(server - _id(guid)) % (1 << _ID_BITS) for server in server_ids] for guid in guids], np.float64)
        self._successors = gaps.argsort(axis=1, kind="stable")
        """[name, rank]: servers in ring order from the name's id; the first is its home."""
        self._preference = topology.server_rtt if rng is None else rng.random(topology.server_rtt.shape)
        """[server, server]: of the servers eligible for a routing table entry, the one with the smallest value is in it."""

    def replicate(self, reads: Array, alpha: float, replicas: float) -> Flags:
        """Return the placement [name, server] that has about ``replicas`` replicas per name on average, by searching for C."""
        ranks = np.empty(len(reads), np.int64)
        ranks[np.argsort(-reads, kind="stable")] = np.arange(len(reads))
        low, high = 0.0, float(self.levels)
        for _ in range(50):
            hops = (low + high) / 2
            if self.placement(ranks, alpha, hops).sum(axis=1).mean() > replicas:
                low = hops
            else:
                high = hops
        return self.placement(ranks, alpha, high)

    def placement(self, ranks: npt.NDArray[np.int64], alpha: float, hops: float) -> Flags:
        """Return the placement [name, server] for names with these popularity ranks (0 is the most popular)."""
        ends = np.array(level_shares(self.base, self.levels, alpha, hops)) * len(ranks)
        level = np.searchsorted(ends, ranks, side="right")
        level = np.minimum(level, self.levels)
        chosen: Flags = self._common_digits >= level[:, None]
        home = np.zeros_like(chosen)
        np.put_along_axis(home, self._successors[:, : self.min_replicas], True, axis=1)
        is_last = (level == self.levels)[:, None]
        has_too_few = chosen.sum(axis=1, keepdims=True) < self.min_replicas
        return np.where(is_last, home, np.where(has_too_few, chosen | home, chosen))

    def route(self, name: int, entry: int, chosen: Flags) -> list[int]:
        """Return the servers after ``entry`` that a lookup passes; the last one has a replica of the name.

        Each hop shares at least one more digit with the name. The routing table decides which of those servers is next.
        """
        path: list[int] = []
        server = entry
        while not chosen[server]:
            closer = np.flatnonzero(self._common_digits[name] > self._common_digits[name, server])
            server = int(closer[self._preference[server, closer].argmin()]) if len(closer) else int(self._successors[name, 0])
            path.append(server)
        return path

    def _count_common_digits(self, a: int, b: int) -> int:
        bits = _ID_BITS - (a ^ b).bit_length()
        return min(self.levels, int(bits / math.log2(self.base)))


def level_shares(base: int, levels: int, alpha: float, hops: float) -> list[float]:
    """Return Beehive's closed form: for each level i < K, the share of names (the most popular ones) at level i or below.

    x_i = (d^i (K' - C) / (1 + d + ... + d^(K' - 1)))^(1 / (1 - alpha)) with d = b^((1 - alpha) / alpha), where K' is the number of levels
    whose share is below 1.
    """
    d = base ** ((1 - alpha) / alpha)
    for below in range(levels, 0, -1):
        total = sum(d**i for i in range(below))
        shares = [(d**i * max(0.0, below - hops) / total) ** (1 / (1 - alpha)) for i in range(below)]
        if shares[-1] <= 1:
            return [*shares, *[1.0] * (levels - below)]
    return [1.0] * levels


def _id(text: str) -> int:
    return int.from_bytes(hashlib.sha1(text.encode()).digest()[: _ID_BITS // 8], "big")
