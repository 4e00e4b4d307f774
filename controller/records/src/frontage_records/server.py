# SPDX-License-Identifier: Apache-2.0
"""``frontage records serve``: the configured engine behind HTTP."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping

from aiohttp.web import AppRunner

from frontage.config import Config
from frontage.config.records import Records
from frontage.config.tls import Tls
from frontage.tls import TlsError, server_context
from frontage_records import http
from frontage_records.dns.regions import Network, Regions, single
from frontage_records.embedded import Embedded
from frontage_records.errors import EngineError
from frontage_records.jetstream.engine import JetStream
from frontage_records.placement.reports import Reporter
from frontage_records.record import Bounds
from frontage_records.ring import Ring
from frontage_records.store import Store
from frontage_records.tokens import Tokens


class Server:
    """A running record server. Create it with `start`."""

    def __init__(self, store: Store, runner: AppRunner, reporter: Reporter | None):
        self._store = store
        self._runner = runner
        self._reporting = None if reporter is None else asyncio.create_task(reporter.run())
        self.address: tuple[str, int] = runner.addresses[0][:2]

    @classmethod
    async def start(cls, config: Config, settings: Records) -> Server:
        """Start the server. Raises RecordError if the engine is unavailable, and OSError if the address cannot be bound."""
        # Check these files before opening anything.
        tokens = None if settings.tokens is None else Tokens.load(settings.tokens)
        tls = None if settings.tls is None else _context(settings.tls)
        store = await open_store(config, settings)
        try:
            ring = Ring(site_ids(config), settings.controllers)
            reporter, on_request = None, None
            if settings.placement is not None and isinstance(store, JetStream):
                reporter = Reporter(store, site_ids(config), settings.placement.epoch)
                on_request = counting(reporter, settings.placement.regions, store.own)
            runner = await http.start(store, ring, *settings.address, tokens, tls, on_request)
        except BaseException:
            await store.close()
            raise
        return cls(store, runner, reporter)

    async def close(self) -> None:
        """Finish requests in progress, then stop."""
        if self._reporting is not None:
            self._reporting.cancel()
            await asyncio.gather(self._reporting, return_exceptions=True)
        await self._store.close()
        await self._runner.cleanup()


def counting(reporter: Reporter, regions: Mapping[Network, int], own: int) -> http.OnRequest:
    """Return a function that counts requests by the client's region: the site of the longest matching prefix, or ``own``."""
    sites = Regions({prefix: (site,) for prefix, site in regions.items()})

    def count(guid: str, client: str, writes: bool) -> None:
        try:
            near, _ = sites.near(single(client))
        except ValueError:
            # A client without an IP address.
            near = ()
        reporter.count(guid, near[0] if near else own, writes=writes)

    return count


def _context(tls: Tls) -> ssl.SSLContext:
    """Return the TLS context of the server. Raises EngineError, which names the file."""
    try:
        return server_context(tls)
    except TlsError as error:
        raise EngineError(str(error)) from None


def bounds_of(settings: Records) -> Bounds:
    """Return the bounds on documents and stamps that the configuration sets."""
    return Bounds(settings.max_bytes, round(settings.max_ahead * 1e6))


def site_ids(config: Config) -> list[int]:
    """Return the ids of all sites; [1] if the configuration has none."""
    own = [config.site.id] if config.site is not None else []
    return sorted({*own, *(site.id for site in config.sites)}) or [1]


async def open_store(config: Config, settings: Records, *, serves: bool = True) -> Store:
    """Open the configured engine. ``serves``: accept operations from servers at other sites. Raises RecordError."""
    own = config.site.id if config.site is not None else 1
    if settings.file is not None:
        return await Embedded.open(settings.file, own, bounds_of(settings))
    return await JetStream.open(
        settings.store.split(","),
        own,
        site_ids(config),
        replicas=settings.replicas,
        controllers=settings.controllers,
        serves=serves,
        bounds=bounds_of(settings),
    )
