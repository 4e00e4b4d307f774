# SPDX-License-Identifier: Apache-2.0
"""The sites nearest to clients, as measured by the end-user mapping (docs/mapping.md) and read from its store."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable

import numpy as np
from prometheus_client import CollectorRegistry, Counter

from frontage.mapping.compute.latency import Latency
from frontage.mapping.errors import StoreError
from frontage.mapping.settings import EndUsers
from frontage.mapping.store.latency import EXPIRED_RETENTION
from frontage.mapping.store.store import Store
from frontage_records.dns.regions import Network, Regions

log = logging.getLogger(__name__)


class MeasuredRegions:
    """Every measured client prefix with its sites, nearest first. A prefix inherits missing RTTs from its covering prefix."""

    def __init__(
        self,
        settings: EndUsers,
        sites: Iterable[int],
        registry: CollectorRegistry,
        clock: Callable[[], float] = time.monotonic,
    ):
        """``sites``: the ids of all sites."""
        self.failures = Counter("frontage_records_dns_mapping_failures", "Failed reads of the mapping's store", registry=registry)
        self._settings = settings
        self._sites = np.array(sorted(set(sites)), np.int64)
        self._latency = Latency(len(self._sites))
        self._store: Store | None = None
        self._clock = clock
        self._version = 0
        self._read_at = clock()
        self._error: str | None = None

    async def follow(self, regions: Regions) -> None:
        """Update ``regions`` until cancelled. If the store is unavailable, they stay as they are."""
        try:
            while True:
                await self.step(regions)
                await asyncio.sleep(self._settings.interval)
        finally:
            if self._store is not None:
                self._store.close()

    async def step(self, regions: Regions) -> None:
        """Read the changes since the last step."""
        try:
            regions.put(await asyncio.to_thread(self._read))
        except StoreError as error:
            self.failures.inc()
            if self._error != str(error):
                log.warning("the zone's regions stay as they are: %s", error)
            self._error = str(error)
        else:
            self._error = None

    def _read(self) -> dict[Network, tuple[int, ...]]:
        if self._store is None:
            self._store = Store(self._settings.store, window=self._settings.window)
        now, version = self._clock(), self._store.version()
        latency, since = self._latency, self._version
        found: dict[Network, tuple[int, ...]] = {}
        if now - self._read_at > EXPIRED_RETENTION:
            # The store may have deleted rows that expired in the meantime: read everything again.
            found = {prefix.network: () for prefix in latency.cover.prefixes}
            latency, since = Latency(len(self._sites)), 0
        cells = self._store.measurements(since).at(self._sites.tolist())
        columns = np.searchsorted(self._sites, cells.sites)
        rows = latency.update(cells.prefixes, cells.rows, columns, cells.rtts)
        self._latency, self._version, self._read_at = latency, version, now
        rtts, prefixes = latency.effective, latency.cover.prefixes
        for row in rows.tolist():
            known = int(np.isfinite(rtts[row]).sum())
            found[prefixes[row].network] = tuple(self._sites[np.argsort(rtts[row], kind="stable")[:known]].tolist())
        return found
