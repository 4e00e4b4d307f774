# SPDX-License-Identifier: Apache-2.0
"""The end-user mapping beside the controllers of a fleet.

`MappingService` starts and stops the mapping as the configuration asks for it, and steers the switches by what is computed. The
libraries of the extra ``mapping`` are imported only once the configuration has a section ``end_users``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from frontage.config import Config
from frontage.fields import IPAddress
from frontage.mapping.errors import StoreError
from frontage.mapping.services import Service, services_of, sites_of
from frontage.mapping.settings import EndUsers, Placement
from frontage.service.fleet import Fleet
from frontage.state.steering import EndUserMapping, MappingError

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from frontage.mapping.control.mapper import Mapper
    from frontage.mapping.control.measurer import Measurer
    from frontage.mapping.store.tables import Tables

log = logging.getLogger(__name__)

LIBRARIES = ("numpy", "sqlalchemy")
"""The packages that the extra ``mapping`` installs and that this package imports."""


def missing_libraries() -> tuple[str, ...]:
    """Return the packages of the extra ``mapping`` that are not installed."""
    return tuple(name for name in LIBRARIES if find_spec(name) is None)


@dataclass(frozen=True, slots=True)
class _Setup:
    """The part of the configuration that the mapping depends on. A change of any field restarts the mapping."""

    settings: EndUsers
    site: int
    sites: dict[int, IPAddress]
    services: tuple[Service, ...]
    decided: frozenset[str]
    """Names of the services that their address alone identifies: the switch steers only these."""
    placement: Placement | None

    @classmethod
    def from_config(cls, config: Config) -> _Setup | None:
        """Return None if the configuration does not ask for a computed mapping."""
        if config.end_users is None or config.site is None:
            return None
        services, decided = services_of(config)
        return cls(config.end_users, config.site.id, sites_of(config), services, decided, config.placement)


class MappingService:
    """Runs a `Mapper`, and a `Measurer` where services are placed by demand, while the configuration asks for them."""

    def __init__(self, fleet: Fleet):
        self.mapper: Mapper | None = None
        self.measurer: Measurer | None = None
        self._fleet = fleet
        self._setup: _Setup | None = None
        self._mapper_task: asyncio.Task[None] | None = None
        self._measurer_task: asyncio.Task[None] | None = None
        self._installed: Tables | None = None
        """The tables that the switch was steered by last; None: the next ones are installed whole."""
        self._error: str | None = None

    async def follow(self) -> None:
        """Start, restart or stop the mapping as the configuration says. Call this periodically."""
        setup = _Setup.from_config(self._fleet.config)
        if setup == self._setup and (setup is None or self._is_running()):
            return
        # If only the mapper has ended, the measurer goes on counting.
        await (self._end_mapper() if setup == self._setup else self.close())
        self._setup = setup
        if setup is not None:
            await self._start(setup)
        elif self._fleet.config.mapping is None:
            await self._fleet.steer(self._fleet.mapping.change_to(EndUserMapping()))

    async def _start(self, setup: _Setup) -> None:
        from frontage.mapping.control.mapper import Mapper
        from frontage.mapping.control.measurer import Measurer

        if setup.placement is not None and self.measurer is None:
            self.measurer = Measurer(self._fleet, setup.placement, setup.settings, setup.site)
            self._measurer_task = asyncio.create_task(self.measurer.run())

        def start() -> Mapper:
            return Mapper(setup.settings, setup.sites, setup.services, self._steer, site=setup.site, placement=setup.placement)

        try:
            self.mapper = await asyncio.to_thread(start)
        except StoreError as error:
            self._log_once(f"no end-user mapping: {error}")
            return
        self._error = None
        self._mapper_task = asyncio.create_task(self.mapper.run())
        if self.measurer is not None:
            self.measurer.store = self.mapper.store

    async def close(self) -> None:
        """Stop the measurer first, because it uses the mapper's store, then the mapper."""
        task, self._measurer_task, self.measurer = self._measurer_task, None, None
        await _cancel(task)
        await self._end_mapper()

    def metrics(self) -> Iterable[Metric]:
        """Return the Prometheus metrics of what runs."""
        if self.mapper is None and self.measurer is None:
            return
        from frontage.mapping.control.metrics import demand_metrics, mapper_metrics, placement_metrics

        if (mapper := self.mapper) is not None:
            yield from mapper_metrics(mapper)
            if (placer := mapper.placer) is not None:
                yield from placement_metrics(placer)
        if (measurer := self.measurer) is not None:
            yield from demand_metrics(measurer)

    @property
    def sites_out(self) -> frozenset[int]:
        """The ids of the sites where no dispatcher answers; none without a computed mapping."""
        return frozenset() if self.mapper is None else frozenset(self.mapper.counters.sites_out)

    async def placement(self) -> list[dict[str, Any]]:
        """Return the placement of services and their moves; nothing while the store is unreadable."""
        if (mapper := self.mapper) is None or mapper.placer is None:
            return []
        from frontage.mapping.demand.described import describe_placement

        try:
            return await asyncio.to_thread(describe_placement, mapper.store)
        except StoreError as error:
            self._log_once(f"cannot read the placement: {error}")
            return []

    async def _end_mapper(self) -> None:
        if self.measurer is not None:
            self.measurer.store = None
        task, self._mapper_task, self.mapper, self._installed = self._mapper_task, None, None, None
        await _cancel(task)

    def _is_running(self) -> bool:
        """Return whether the mapper runs. Raises any error that ended one of the tasks, except a StoreError."""
        for task in (self._mapper_task, self._measurer_task):
            if task is not None and task.done() and not task.cancelled() and (error := task.exception()) is not None:
                if not isinstance(error, StoreError):
                    raise error
                self._log_once(f"the end-user mapping has ended: {error}")
        return self._mapper_task is not None and not self._mapper_task.done()

    async def _steer(self, tables: Tables) -> None:
        """Write the changed entries to the switch.

        If the switch cannot hold the mapping, it keeps the old one, and the next call writes the whole mapping. Raises nothing.
        """
        from frontage.mapping.control import switch

        setup, fleet = self._setup, self._fleet
        if setup is None or fleet.config.site is None:
            return
        site = fleet.config.site.id
        if self._installed is None:
            mapping = await asyncio.to_thread(switch.whole, tables, site, setup.decided)
            change = fleet.mapping.change_to(mapping)
        else:
            change = await asyncio.to_thread(switch.change, self._installed, tables, site, setup.decided)
        try:
            if change:
                await fleet.steer(change)
        except MappingError as error:
            self._installed = None
            self._log_once(f"the switch keeps its mapping: {error}")
        else:
            self._installed, self._error = tables, None

    def _log_once(self, error: str) -> None:
        if error != self._error:
            log.error("%s", error)
        self._error = error


async def _cancel(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, StoreError):
            await task
