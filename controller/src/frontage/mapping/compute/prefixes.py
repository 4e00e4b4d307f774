# SPDX-License-Identifier: Apache-2.0
"""Client prefixes as plain numbers, and which prefix covers which."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from socket import AF_INET, AF_INET6, inet_pton
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
BITS = {4: 32, 6: 128}


class Prefix(NamedTuple):
    """An IPv4 or IPv6 prefix. Prefixes sort by family, address and length, so that a prefix precedes all that it covers."""

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
        """The highest address of the prefix."""
        return self.value | (1 << BITS[self.family] - self.length) - 1

    def __str__(self) -> str:
        address = IPv4Address(self.value) if self.family == 4 else IPv6Address(self.value)
        return f"{address}/{self.length}"

    def shortened(self, length: int) -> Prefix:
        """Return this prefix, or the prefix of ``length`` bits that covers it."""
        if self.length <= length:
            return self
        host = BITS[self.family] - length
        return Prefix(self.family, self.value >> host << host, length)


def parse(text: str) -> Prefix:
    """Parse ``198.51.100.0/24`` or ``2001:db8::/48``. An address without a length is a host prefix. Raises ValueError."""
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
    # Slower, but accepts all forms and explains errors.
    network = ip_network(text)
    return Prefix(network.version, int(network.network_address), network.prefixlen)


class Cover:
    """Numbers prefixes 0, 1, ... in order of arrival, and knows the parent of each: the longest other prefix that covers it."""

    def __init__(self) -> None:
        self.rows: dict[Prefix, int] = {}
        self.prefixes: list[Prefix] = []
        self.parent = np.empty(0, np.int64)
        """The row of each prefix's parent; -1 if it has none."""
        self.rank = np.empty(0, np.int64)
        """The position of each prefix in address order."""
        self.levels: list[Rows] = []
        """The rows that are covered by 0, 1, 2, ... other prefixes."""

    def __len__(self) -> int:
        return len(self.prefixes)

    def add(self, prefixes: set[Prefix]) -> list[int]:
        """Add prefixes. Returns the rows of new prefixes and of those whose parent has changed."""
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
        """Return the rows of the prefixes that cover an address, longest first."""
        bits = BITS[address.version]
        covering = (Prefix(address.version, int(address), bits).shortened(length) for length in range(bits, -1, -1))
        return [row for prefix in covering if (row := self.rows.get(prefix)) is not None]

    def _link(self) -> None:
        parent, rank, depth = (np.empty(len(self.prefixes), np.int64) for _ in range(3))
        open_: list[tuple[int, int, int, int]] = []
        for position, prefix in enumerate(sorted(self.rows)):
            row = self.rows[prefix]
            while open_ and (open_[-1][0] != prefix.family or open_[-1][1] < prefix.value):
                open_.pop()
            parent[row], depth[row] = (open_[-1][2], open_[-1][3] + 1) if open_ else (-1, 0)
            rank[row] = position
            open_.append((prefix.family, prefix.last, row, int(depth[row])))
        self.parent, self.rank = parent, rank
        self.levels = [np.flatnonzero(depth == level) for level in range(int(depth.max()) + 1)]
