# SPDX-License-Identifier: Apache-2.0
"""Explains to which sites a client of a service is sent, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from frontage.mapping.compute.prefixes import Prefix
from frontage.mapping.compute.values import Sites
from frontage.mapping.store.store import Store
from frontage.mapping.store.tables import Tables, read


@dataclass(frozen=True, slots=True)
class Rtt:
    """The RTT that counts for one site: the minimum under the longest prefix that has one."""

    site: int
    prefix: Prefix
    source: str
    rtt_us: float
    count: int
    measured_at: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """The sites that a client of a service is sent to, with the entries and measurements behind the choice."""

    own_site: int
    matched: Prefix | None
    """The matching entry of the client table; None if the client is in no region."""
    region: int
    deployment: int
    """The number of the service's deployment; 0 if the service has no site."""
    sites: Sites
    """The chosen sites, best first; empty if the service has no site."""
    deployed: frozenset[int]
    """The sites where the service is deployed."""
    rtts: tuple[Rtt, ...]
    """The client's RTTs, nearest site first."""

    def plain(self) -> dict[str, Any]:
        """Return the explanation as plain values."""
        return {
            "ok": True,
            "site": self.own_site,
            "matched": str(self.matched) if self.matched else None,
            "region": self.region,
            "deployment": self.deployment,
            "sites": list(self.sites),
            "deployed": sorted(self.deployed),
            "rtts": [asdict(row) | {"prefix": str(row.prefix)} for row in self.rtts],
        }


def look_up(store: Store, client: Prefix, service: str, own_site: int) -> Explanation:
    """Look up a client in the tables of ``own_site``. Raises KeyError if there is no such service."""
    tables = read(store, Tables())
    if service not in tables.details:
        raise KeyError(service)
    covering = [client.shortened(length) for length in range(client.length, -1, -1)]
    matched = next((prefix for prefix in covering if prefix in tables.clients), None)
    region = tables.clients[matched] if matched else 0
    best: dict[int, Rtt] = {}
    for prefix, site, source, rtt, count, when in store.rtts(covering):
        old = best.get(site)
        if old is None or (-prefix.length, rtt) < (-old.prefix.length, old.rtt_us):
            best[site] = Rtt(site, prefix, source, rtt, count, when)
    rtts = tuple(sorted(best.values(), key=lambda row: row.rtt_us))
    number = tables.services.get(service, 0)
    if not number:
        return Explanation(own_site, matched, region, 0, (), frozenset(), rtts)
    entries = tables.entries(own_site, number)
    entry = entries[region] if region < len(entries) and entries[region].any() else entries[0]
    sites = tuple(site for site in entry.tolist() if site)
    return Explanation(own_site, matched, region, number, sites, frozenset(tables.deployments[number].sites), rtts)
