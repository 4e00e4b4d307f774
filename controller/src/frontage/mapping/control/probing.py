# SPDX-License-Identifier: Apache-2.0
"""Active measurements: which addresses the sites' dispatchers probe."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterable, Mapping

from frontage.fields import IPAddress
from frontage.mapping.compute.prefixes import parse
from frontage.mapping.control.dispatcher import Dispatcher, DispatcherError
from frontage.mapping.settings import EndUsers
from frontage.mapping.store.store import Store

log = logging.getLogger(__name__)

SITE_PROBE_INTERVAL = 60.0
"""Seconds between probes from site to site, by which clients in no region are served."""
MAX_PROBES = 1024
"""Addresses that a dispatcher accepts in one request."""
_FRESH_WINDOWS = 2
"""Windows after which a client prefix is probed again."""


class Prober:
    """Starts the probes of one controller."""

    def __init__(self, settings: EndUsers, sites: Mapping[int, IPAddress], store: Store):
        """``sites``: the tunnel addresses of the sites' switches by site id."""
        self.probes = 0
        """Addresses that dispatchers were asked to probe so far."""
        self.under_way: asyncio.Future[list[None]] | None = None
        self._settings = settings
        self._sites = sites
        self._store = store
        self._sites_probed_at = -math.inf
        self._cursors: dict[str, str] = {}

    def start(self, dispatchers: Iterable[Dispatcher], now: float) -> None:
        """Start probes at the dispatchers that answer, without waiting for the results."""
        if not self._settings.probes_per_second or (self.under_way is not None and not self.under_way.done()):
            return
        sites = now - self._sites_probed_at >= SITE_PROBE_INTERVAL
        if sites:
            self._sites_probed_at = now
        answering = [dispatcher for dispatcher in dispatchers if dispatcher.error is None]
        self.under_way = asyncio.gather(*(asyncio.to_thread(self._probe, item, now, sites=sites) for item in answering))

    async def close(self) -> None:
        """Wait for the probes under way."""
        if self.under_way is not None:
            await asyncio.gather(self.under_way, return_exceptions=True)

    def _probe(self, dispatcher: Dispatcher, now: float, *, sites: bool) -> None:
        """Probe from one site the first address of client prefixes that other sites have measured and it has not."""
        addresses: list[IPAddress] = []
        if sites:
            addresses += [vtep for site, vtep in self._sites.items() if site != dispatcher.site]
        limit = min(int(self._settings.probes_per_second * self._settings.interval), MAX_PROBES - len(addresses))
        after = now - _FRESH_WINDOWS * self._settings.window
        prefixes = self._store.unmeasured(dispatcher.site, after, self._cursors.get(dispatcher.url, ""), limit)
        self._cursors[dispatcher.url] = prefixes[-1] if len(prefixes) == limit and prefixes else ""
        addresses += [parse(prefix).network.network_address + 1 for prefix in prefixes]
        if not addresses:
            return
        try:
            dispatcher.probe(addresses)
        except DispatcherError as error:
            log.warning("mapping: %s", error)
        else:
            self.probes += len(addresses)
