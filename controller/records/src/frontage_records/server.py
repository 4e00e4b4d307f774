# SPDX-License-Identifier: Apache-2.0
"""``frontage records serve``: the configured engine behind HTTP."""

from __future__ import annotations

import ssl

from aiohttp.web import AppRunner

from frontage.config import Config
from frontage.config.records import Records, Tls
from frontage_records import http
from frontage_records.embedded import Embedded
from frontage_records.errors import EngineError
from frontage_records.jetstream.engine import JetStream
from frontage_records.record import Bounds
from frontage_records.ring import Ring
from frontage_records.store import Store
from frontage_records.tokens import Tokens


class Server:
    """A running record server. Create it with `start`."""

    def __init__(self, store: Store, runner: AppRunner):
        self._store = store
        self._runner = runner
        self.address: tuple[str, int] = runner.addresses[0][:2]

    @classmethod
    async def start(cls, config: Config, settings: Records) -> Server:
        """Start the server. Raises RecordError if the engine is unavailable, and OSError if the address cannot be bound."""
        # Check these files before opening anything.
        tokens = None if settings.tokens is None else Tokens.load(settings.tokens)
        tls = None if settings.tls is None else server_context(settings.tls)
        store = await open_store(config, settings)
        try:
            ring = Ring(site_ids(config), settings.controllers)
            runner = await http.start(store, ring, *settings.address, tokens, tls)
        except BaseException:
            await store.close()
            raise
        return cls(store, runner)

    async def close(self) -> None:
        """Finish requests in progress, then stop."""
        await self._store.close()
        await self._runner.cleanup()


def server_context(tls: Tls) -> ssl.SSLContext:
    """Return the TLS context of the server. Raises EngineError, which names the file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise EngineError(f"{tls.certificate}, {tls.key}: cannot load certificate and key: {error}") from None
    if tls.clients is not None:
        try:
            context.load_verify_locations(tls.clients)
        except (OSError, ssl.SSLError) as error:
            raise EngineError(f"{tls.clients}: cannot load the authorities: {error}") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


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
