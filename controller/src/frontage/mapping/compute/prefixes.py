"""Client prefixes as plain numbers, and which of them covers which."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from socket import AF_INET, AF_INET6, inet_pton
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
BITS = {4: 32, 6: 128}


class Prefix(NamedTuple):
    """An IPv4 or IPv6 prefix; sorts by family, address, length, so that a prefix stands before all that it covers."""

    family: int
    value: int
    length: int

    @property
    def network(self) -> IPv4Network | IPv6Network:
        if self.family == 4:
            return IPv4Network((self.value, self.length))
        return IPv6Network((self.value, self.length))

    @property
    def last(self) -> int:
        """The highest address."""
        return self.value | (1 << BITS[self.family] - self.length) - 1

    def __str__(self) -> str:
        address = IPv4Address(self.value) if self.family == 4 else IPv6Address(self.value)
        return f"{address}/{self.length}"

    def shortened(self, length: int) -> Prefix:
        """This prefix, or the one of ``length`` bits that covers it."""
        if self.length <= length:
            return self
        host = BITS[self.family] - length
        return Prefix(self.family, self.value >> host << host, length)


def parse(text: str) -> Prefix:
    """``198.51.100.0/24``, ``2001:db8::/48``; an address without length is a prefix of its own. Raises ValueError."""
    address, _, length = text.partition("/")
    family = 6 if ":" in address else 4
    try:
        value = int.from_bytes(inet_pton(AF_INET6 if family == 6 else AF_INET, address), "big")
    except OSError:
        value = -1
    if value >= 0 and length.isdecimal():
        host = BITS[family] - int(length)
        if host >= 0 and value & (1 << host) - 1 == 0:
            return Prefix(family, value, int(length))
    # Slower, but it knows all forms, and says what is wrong.
    network = ip_network(text)
    return Prefix(network.version, int(network.network_address), network.prefixlen)


class Cover:
    """Numbers prefixes 0, 1, ... as they come, and knows the longest other one that covers each."""

    def __init__(self) -> None:
        self.rows: dict[Prefix, int] = {}
        self.prefixes: list[Prefix] = []
        self.parent = np.empty(0, np.int64)
        """Of each prefix the row of the longest that covers it; -1 of none."""
        self.rank = np.empty(0, np.int64)
        """The place of each prefix in address order."""
        self.levels: list[Rows] = []
        """The rows that are covered by 0, 1, 2, ... others."""

    def __len__(self) -> int:
        return len(self.prefixes)

    def add(self, prefixes: set[Prefix]) -> list[int]:
        """Give a row to each that has none yet. Returns those whose parent is new or another now, the new ones among them."""
        new = sorted(prefixes - self.rows.keys())
        if not new:
            return []
        for prefix in new:
            self.rows[prefix] = len(self.prefixes)
            self.prefixes.append(prefix)
        before = self.parent
        self._link()
        changed = np.flatnonzero(self.parent[: len(before)] != before)
        return [*changed.tolist(), *range(len(before), len(self.prefixes))]

    def find(self, address: IPv4Address | IPv6Address) -> list[int]:
        """The rows that cover an address, longest first."""
        bits = BITS[address.version]
        chain = (Prefix(address.version, int(address), bits).shortened(length) for length in range(bits, -1, -1))
        return [row for prefix in chain if (row := self.rows.get(prefix)) is not None]

    def _link(self) -> None:
        parent, rank, depth = (np.empty(len(self.prefixes), np.int64) for _ in range(3))
        open_: list[tuple[int, int, int, int]] = []
        for place, prefix in enumerate(sorted(self.rows)):
            row = self.rows[prefix]
            while open_ and (open_[-1][0] != prefix.family or open_[-1][1] < prefix.value):
                open_.pop()
            parent[row], depth[row] = (open_[-1][2], open_[-1][3] + 1) if open_ else (-1, 0)
            rank[row] = place
            open_.append((prefix.family, prefix.last, row, int(depth[row])))
        self.parent, self.rank = parent, rank
        self.levels = [np.flatnonzero(depth == level) for level in range(int(depth.max()) + 1)]
