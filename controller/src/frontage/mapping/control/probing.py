"""Active measurements: which addresses the sites' dispatchers are told to ping."""

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

SITES_PROBED_EVERY = 60.0
"""Seconds between probes from site to site, by which clients are served of whom nothing is known."""
MAX_PROBES = 1024
"""Addresses that a dispatcher takes at once."""
_FRESH = 2
"""Windows after which a client prefix is probed again."""


class Prober:
    """One controller's."""

    def __init__(self, settings: EndUsers, sites: Mapping[int, IPAddress], store: Store):
        """``sites``: ids, and the addresses at which their switches take tunnels."""
        self.probes = 0
        """Addresses that dispatchers were asked to ping so far."""
        self.under_way: asyncio.Future[list[None]] | None = None
        self._settings = settings
        self._sites = sites
        self._store = store
        self._sites_probed = -math.inf
        self._cursors: dict[str, str] = {}

    def order(self, dispatchers: Iterable[Dispatcher], now: float) -> None:
        """Of dispatchers that answer. Probes take their time, so they are not waited for."""
        if not self._settings.probes_per_second or (self.under_way is not None and not self.under_way.done()):
            return
        sites = now - self._sites_probed >= SITES_PROBED_EVERY
        if sites:
            self._sites_probed = now
        asked = [asyncio.to_thread(self._probe, one, now, sites=sites) for one in dispatchers if one.error is None]
        self.under_way = asyncio.gather(*asked)

    async def ended(self) -> None:
        """Wait for those under way."""
        if self.under_way is not None:
            await asyncio.gather(self.under_way, return_exceptions=True)

    def _probe(self, dispatcher: Dispatcher, now: float, *, sites: bool) -> None:
        """Order pings from this site to client prefixes that others have news of and it has not: each at its first address."""
        addresses: list[IPAddress] = []
        if sites:
            addresses += [vtep for site, vtep in self._sites.items() if site != dispatcher.site]
        limit = min(int(self._settings.probes_per_second * self._settings.interval), MAX_PROBES - len(addresses))
        after = now - _FRESH * self._settings.window
        found = self._store.unmeasured(dispatcher.site, after, self._cursors.get(dispatcher.url, ""), limit)
        self._cursors[dispatcher.url] = found[-1] if len(found) == limit and found else ""
        addresses += [parse(prefix).network.network_address + 1 for prefix in found]
        if not addresses:
            return
        try:
            dispatcher.probe(addresses)
        except DispatcherError as error:
            log.warning("mapping: %s", error)
        else:
            self.probes += len(addresses)
