# SPDX-License-Identifier: Apache-2.0
"""The prefixes that routers announce to a switch, and their limit."""

from __future__ import annotations

from collections import Counter
from ipaddress import ip_network

from frontage.config.bgp import Learn
from frontage.fields import IPAddress, IPNetwork

ROOM = 0.9
"""The share of `max_routes` below which rejected routes are requested again."""


class Prefixes:
    """Counts the routers that announce each prefix, and the prefixes of each IP version."""

    def __init__(self) -> None:
        self._holders: Counter[IPNetwork] = Counter()
        """The number of routers that announce a prefix."""
        self.by_version = {4: 0, 6: 0}
        self._limited = {4: False, 6: False}

    def __contains__(self, prefix: IPNetwork) -> bool:
        return prefix in self._holders

    @property
    def all(self) -> frozenset[IPNetwork]:
        """All prefixes."""
        return frozenset(self._holders)

    def is_over_limit(self, prefix: IPNetwork, learn: Learn) -> bool:
        """Return whether there is no room for a prefix, and remember that for `wants_refresh`."""
        family = learn.family(prefix.version)
        if prefix in self._holders or family is None or self.by_version[prefix.version] < family.max_routes:
            return False
        self._limited[prefix.version] = True
        return True

    def add(self, prefix: IPNetwork) -> None:
        """Count one more router that announces a prefix."""
        self.by_version[prefix.version] += prefix not in self._holders
        self._holders[prefix] += 1

    def remove(self, prefix: IPNetwork) -> None:
        """Count one router fewer that announces a prefix."""
        self._holders[prefix] -= 1
        if not self._holders[prefix]:
            del self._holders[prefix]
            self.by_version[prefix.version] -= 1

    def wants_refresh(self, learn: Learn) -> bool:
        """Return whether prefixes were rejected because of the limit, and there is room now."""
        return any(
            limited and (family := learn.family(version)) is not None and self.by_version[version] <= ROOM * family.max_routes
            for version, limited in self._limited.items()
        )

    def refreshing(self) -> None:
        """Note that all routes are about to be read again."""
        self._limited = {4: False, 6: False}

    def longest(self, address: IPAddress) -> IPNetwork | None:
        """Return the longest prefix that contains an address."""
        for length in range(address.max_prefixlen, -1, -1):
            prefix = ip_network(f"{address}/{length}", strict=False)
            if prefix in self._holders:
                return prefix
        return None
