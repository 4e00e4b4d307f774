"""The end-user mapping beside one running controller: follows the configuration, and steers the switch by what is computed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from typing import TypeAlias

from frontage.config import Config
from frontage.controller import Controller
from frontage.demand.measure import Measurer
from frontage.demand.settings import Placement
from frontage.enduser import switch
from frontage.enduser.database import StoreError
from frontage.enduser.run import Mapper
from frontage.enduser.settings import EndUsers
from frontage.enduser.store import Service
from frontage.enduser.tables import Tables
from frontage.fields import IPAddress
from frontage.mapping import EndUserMapping, MappingError

log = logging.getLogger(__name__)

Wanted: TypeAlias = tuple[EndUsers, dict[int, IPAddress], tuple[Service, ...], frozenset[str], Placement | None]


class Attached:
    """Runs a `Mapper` while the configuration asks for one."""

    def __init__(self, controller: Controller):
        self.mapper: Mapper | None = None
        self._controller = controller
        self._wanted: Wanted | None = None
        self.measurer: Measurer | None = None
        """While services are placed by demand."""
        self._task: asyncio.Task[None] | None = None
        self._measuring: asyncio.Task[None] | None = None
        self._steered: Tables | None = None
        self._error: str | None = None

    async def follow(self) -> None:
        """Make it as the configuration says: to be called again and again."""
        wanted = _wanted(self._controller.config)
        if wanted == self._wanted and (wanted is None or self._running()):
            return
        # What is counted outlives a mapper that its store has ended.
        await (self._end_mapper() if wanted == self._wanted else self.close())
        self._wanted = wanted
        if wanted is None:
            if self._controller.config.mapping is None:
                await self._controller.steer(self._controller.mapping.change_to(EndUserMapping()))
            return
        settings, sites, services, _, placement = wanted
        own = self._controller.config.site
        assert own is not None
        if placement is not None and self.measurer is None:
            self.measurer = Measurer(self._controller, placement, settings, own.id)
            self._measuring = asyncio.create_task(self.measurer.run())
        try:
            self.mapper = await asyncio.to_thread(Mapper, settings, sites, services, self._steer, site=own.id, placement=placement)
        except StoreError as error:
            self._tell(f"no end-user mapping: {error}")
            return
        self._error = None
        self._task = asyncio.create_task(self.mapper.run())
        if self.measurer is not None:
            self.measurer.store = self.mapper.store

    async def close(self) -> None:
        # What measures uses the mapper's store.
        measuring, self._measuring, self.measurer = self._measuring, None, None
        await _end(measuring)
        await self._end_mapper()

    async def _end_mapper(self) -> None:
        if self.measurer is not None:
            self.measurer.store = None
        task, self._task, self.mapper, self._steered = self._task, None, None, None
        await _end(task)

    def _running(self) -> bool:
        """Raises what ended one of the tasks, unless that was the store."""
        for task in (self._task, self._measuring):
            if task is not None and task.done() and not task.cancelled() and (error := task.exception()) is not None:
                if not isinstance(error, StoreError):
                    raise error
                self._tell(f"the end-user mapping has ended: {error}")
        return self._task is not None and not self._task.done()

    async def _steer(self, tables: Tables) -> None:
        """Raises nothing: a mapping that the switch cannot have leaves it as it is, and is tried again whole."""
        if self._wanted is None:
            return
        _, _, _, names, _ = self._wanted
        config, controller = self._controller.config, self._controller
        if config.site is None:
            return
        if self._steered is None:
            found = await asyncio.to_thread(switch.whole, tables, config.site.id, names)
            change = controller.mapping.change_to(found)
        else:
            change = await asyncio.to_thread(switch.change, self._steered, tables, config.site.id, names)
        try:
            if change:
                await controller.steer(change)
        except MappingError as error:
            self._steered = None
            self._tell(f"the switch keeps its mapping: {error}")
        else:
            self._steered, self._error = tables, None

    def _tell(self, error: str) -> None:
        if error != self._error:
            log.error("%s", error)
        self._error = error


async def _end(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, StoreError):
            await task


def _wanted(config: Config) -> Wanted | None:
    if config.end_users is None or config.site is None:
        return None
    services, names = services_of(config)
    return config.end_users, sites_of(config), services, names, config.placement


def sites_of(config: Config) -> dict[int, IPAddress]:
    """Ids of all sites, and where their switches take tunnels."""
    own = {} if config.site is None else {config.site.id: config.site.vtep[0]}
    return own | {site.id: site.vtep for site in config.other_sites}


def services_of(config: Config) -> tuple[tuple[Service, ...], frozenset[str]]:
    """The services that the configuration names, and the names of those that the address decides."""
    listed = config.end_users.services if config.end_users is not None else ()
    services = {one.name: Service(one.name, one.id or 0, one.redundancy, one.policy, one.alpn) for one in listed}
    decided = set()
    for vip in config.vips:
        if vip.artemis is not None:
            name = vip.artemis.service
            known = services.get(name, Service(name, 0))
            services[name] = replace(known, number=vip.artemis.id)
            if vip.artemis.decided:
                decided.add(name)
    return tuple(services.values()), frozenset(decided)
