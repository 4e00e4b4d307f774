# SPDX-License-Identifier: Apache-2.0
"""Runs the placer of records in the controller, while the configuration has a section ``records.placement``."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable

from prometheus_client.core import Metric

from frontage.config import Config
from frontage.config.records import Records
from frontage_records.errors import RecordError
from frontage_records.jetstream.engine import JetStream
from frontage_records.placement.placer import Placer
from frontage_records.placement.view import metrics
from frontage_records.server import open_store, site_ids

log = logging.getLogger(__name__)

RETRY_INTERVAL = 5.0
"""Seconds before another attempt if the record store is unreachable."""


class PlacementService:
    """Runs a `Placer` according to the configuration."""

    def __init__(self, is_leading: Callable[[], bool]):
        self.placer: Placer | None = None
        self._is_leading = is_leading
        self._setup: tuple[Records, list[int]] | None = None
        self._task: asyncio.Task[None] | None = None

    async def follow(self, config: Config) -> None:
        """Start, restart or stop the placer according to the configuration. Call this periodically."""
        settings = config.records
        setup = None
        if settings is not None and settings.placement is not None and settings.file is None:
            setup = settings, site_ids(config)
        if setup == self._setup:
            return
        await self.close()
        self._setup = setup
        if setup is not None:
            self._task = asyncio.create_task(self._run(config, *setup))

    async def close(self) -> None:
        """Stop the placer."""
        task, self._task, self._setup = self._task, None, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def metrics(self) -> Iterable[Metric]:
        """Return the Prometheus metrics of the placer, if it runs."""
        if self.placer is not None:
            yield from metrics(self.placer.progress)

    async def _run(self, config: Config, settings: Records, sites: list[int]) -> None:
        error, placement = "", settings.placement
        assert placement is not None
        while True:
            try:
                store = await open_store(config, settings, serves=False)
                assert isinstance(store, JetStream)
                try:
                    self.placer = Placer(store, sites, placement, placement.min_replicas or settings.controllers, self._is_leading)
                    await self.placer.run()
                finally:
                    self.placer = None
                    await store.close()
            except RecordError as problem:
                if str(problem) != error:
                    log.error("cannot place records: %s", problem)
                error = str(problem)
            await asyncio.sleep(RETRY_INTERVAL)
