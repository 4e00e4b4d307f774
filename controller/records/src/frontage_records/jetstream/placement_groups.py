# SPDX-License-Identifier: Apache-2.0
"""Placement groups: a stream whose Raft group is at one site, with a mirror at each other site of the replica set.

A group is called ``p`` and the number of a partition, or ``c`` and a number. The group of a partition holds its new records, and
pointers to those that have moved. There is one ``c`` group for each replica set to which records have moved. The description of the
stream contains the replica set, so a group can move as a whole and keep its name.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import nats.errors
from nats.js import api
from nats.js.errors import BadRequestError, NotFoundError

from frontage_records.errors import EngineError, SiteError
from frontage_records.jetstream.connection import REPEATS_WINDOW, Connection
from frontage_records.jetstream.log import HISTORY
from frontage_records.ring import Ring, partition

log = logging.getLogger(__name__)

_PREFIX = "records-"
CHANGES = "records-changes"
"""Prefix of the subjects under which streams republish stored messages to subscribers, before the record's token."""
_Change: TypeAlias = Callable[[api.StreamConfig], Awaitable[object]]
_NO_PEERS = 10005
_NAME_IN_USE = 10058
_OFFLINE = "peer offline"
"""Part of JetStream's message for :data:`_NO_PEERS` if a server does not answer, unlike if there are too few."""
_NAME = re.compile(r"records-(c(\d+)|p\d+)")


def token(guid: str) -> str:
    """Return the GUID as one token of a subject. Dots separate tokens; '%' does not occur in GUIDs."""
    return guid.replace(".", "%")


def guid_of(subject_token: str) -> str:
    """Return the GUID of a `token`."""
    return subject_token.replace("%", ".")


@dataclass(frozen=True, slots=True)
class PlacementGroup:
    """Records with the same replica set, which share a stream."""

    name: str
    sites: tuple[int, ...]
    """The replica set: the site of the Raft group, then the sites of the mirrors."""

    @property
    def stream(self) -> str:
        """The name of the stream."""
        return _PREFIX + self.name

    def mirror(self, site: int) -> str:
        """Return the name of the mirror at a site."""
        return f"{self.stream}-at-{site}"

    def subject(self, guid: str) -> str:
        """Return the subject of a record."""
        return f"records.{self.name}.{token(guid)}"


class PlacementGroups:
    """The placement groups as this server knows them. Cached groups may be stale: call `refresh` if one is found to be."""

    def __init__(self, connection: Connection, ring: Ring, own: int, sites: frozenset[int], replicas: int):
        self._connection = connection
        self._ring = ring
        self._own = own
        self._sites = sites
        self.replicas = replicas
        self._known: dict[str, PlacementGroup] = {}
        self._seen: dict[str, PlacementGroup] = {}
        self._mirrors: dict[str, asyncio.Task[None]] = {}
        self._refreshes: dict[str, asyncio.Task[None]] = {}

    async def close(self) -> None:
        """Stop creating mirrors."""
        tasks = [*self._mirrors.values(), *self._refreshes.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def refresh(self, group: PlacementGroup) -> None:
        """Read a group again in the background. Until its servers answer, the cached one stays in use."""
        if group.name not in self._refreshes:
            task = self._refreshes[group.name] = asyncio.create_task(self._refresh(group))
            task.add_done_callback(lambda _: self._refreshes.pop(group.name, None))

    async def _refresh(self, group: PlacementGroup) -> None:
        with contextlib.suppress(EngineError):
            await self.current(group)

    async def current(self, group: PlacementGroup) -> PlacementGroup:
        """Return the group as it is now, because another server may have moved it. Raises EngineError, and then keeps the cached one."""
        return await self._read(group.name) or group

    async def get(self, name: str) -> PlacementGroup | None:
        """Return a group; None if it does not exist. Raises EngineError."""
        return self._known.get(name) or await self._read(name)

    async def _read(self, name: str) -> PlacementGroup | None:
        try:
            info = await self._connection.retry(lambda: self._connection.context.stream_info(_PREFIX + name))
        except NotFoundError:
            self._known.pop(name, None)
            return None
        found = _parse(info)
        if found is not None:
            self._mirror_here(found)
            self._known[name] = found
        return found

    async def partition(self, guid: str, *, make: bool) -> PlacementGroup | None:
        """Return the group of a record's partition, at its replica-controllers (Auspice, section 1.2). New records are created there.

        None if the group does not exist and ``make`` is false.
        """
        part = partition(guid)
        name = f"p{part}"
        found = await self.get(name)
        if found is None and make:
            try:
                found = await self._make(PlacementGroup(name, self._ring.controllers(part)))
            except _TakenError:
                # Another server has just created it, with other sites.
                found = await self.get(name)
        return found

    async def at(self, sites: Sequence[int]) -> PlacementGroup:
        """Return the group with exactly these sites; or a new one. Raises SiteError, EngineError."""
        wanted = tuple(sites)
        self._check(wanted)
        while True:
            names = await self._names()
            for name in names:
                if (await self._cached(name)).sites != wanted:
                    continue
                # Another server may have moved it since.
                self._seen.pop(name)
                found = await self._cached(name)
                if found.sites == wanted:
                    self._known[name] = found
                    return found
            number = 1 + max((int(name[1:]) for name in names if name.startswith("c")), default=0)
            try:
                return await self._make(PlacementGroup(f"c{number}", wanted))
            except _TakenError:
                # Another server has created it for other sites.
                continue

    async def move(self, name: str, sites: Sequence[int]) -> PlacementGroup:
        """Start to move a group as a whole, while it stays in service. `moves` waits for the end.

        Raises SiteError, EngineError.
        """
        moved = PlacementGroup(name, tuple(sites))
        self._check(moved.sites)
        before = await self.get(name)
        if before is None:
            raise EngineError(f"no such placement group: {name}")
        await self._change(self._connection.context.update_stream, self._config(moved))
        for site in moved.sites[1:]:
            await self._make_mirror(moved, site)
        for site in {*before.sites, *moved.sites} - set(moved.sites[1:]):
            try:
                await self._connection.retry(partial(self._connection.context.delete_stream, moved.mirror(site)))
            except NotFoundError:
                continue
        self._known[name] = moved
        return moved

    def _check(self, sites: tuple[int, ...]) -> None:
        unknown = sorted(set(sites) - self._sites)
        if unknown:
            known = ", ".join(map(str, sorted(self._sites)))
            raise SiteError(f"unknown site {unknown[0]}: use one of: {known}")

    async def every(self) -> list[PlacementGroup]:
        """Return all groups. Raises EngineError."""
        self._seen.clear()
        return [await self._cached(name) for name in await self._names()]

    async def _names(self) -> list[str]:
        """Return the names of all groups.

        Listing names is reliable: a list with details is late, and fails, while any server with a mirror is down.
        """
        found = await self._connection.names()
        return [matched[1] for name in found if (matched := _NAME.fullmatch(name)) is not None]

    async def _cached(self, name: str) -> PlacementGroup:
        """Return a group as it was when this server first read it. Raises EngineError."""
        if name not in self._seen:
            try:
                info = await self._connection.retry(lambda: self._connection.context.stream_info(_PREFIX + name))
            except NotFoundError:
                raise EngineError(f"the placement group {name} has just been deleted: try again") from None
            self._seen[name] = _parse(info) or PlacementGroup(name, ())
        return self._seen[name]

    async def _make(self, group: PlacementGroup) -> PlacementGroup:
        """Create a group. Raises _TakenError if the name exists with other sites."""
        await self._change(self._add_stream, self._config(group))
        for site in group.sites[1:]:
            await self._make_mirror(group, site)
        self._known[group.name] = group
        return group

    def _mirror_here(self, group: PlacementGroup) -> None:
        """Create this site's mirror in the background, because the creator of the group may have failed before.

        If the mirror's server is down, this takes long. Until then reads go to the origin.
        """
        if self._own in group.sites[1:] and group.name not in self._mirrors:
            task = self._mirrors[group.name] = asyncio.create_task(self._make_mirror(group, self._own))
            task.add_done_callback(lambda _: self._mirrors.pop(group.name, None))

    async def _make_mirror(self, group: PlacementGroup, site: int) -> None:
        """Create a mirror. A site that is down gets it later; until then reads go to the origin."""
        config = api.StreamConfig(
            name=group.mirror(site),
            mirror=api.StreamSource(name=group.stream),
            storage=api.StorageType.FILE,
            num_replicas=1,
            max_msgs_per_subject=HISTORY,
            placement=api.Placement(tags=[tag(site)]),
            allow_direct=True,
        )
        try:
            await self._change(self._connection.context.add_stream, config)
        except (EngineError, _TakenError) as error:
            log.warning("%s: no mirror at site %d: %s", group.stream, site, error)

    def _config(self, group: PlacementGroup) -> api.StreamConfig:
        return api.StreamConfig(
            name=group.stream,
            description=json.dumps({"sites": group.sites}),
            subjects=[group.subject("*")],
            storage=api.StorageType.FILE,
            num_replicas=self.replicas,
            max_msgs_per_subject=HISTORY,
            placement=api.Placement(tags=[tag(group.sites[0])]),
            republish=api.RePublish(src=group.subject("*"), dest=f"{CHANGES}.{{{{wildcard(1)}}}}"),
            duplicate_window=REPEATS_WINDOW,
            # Only the leader answers reads, because followers may not have the last write yet.
            allow_direct=False,
        )

    async def _add_stream(self, config: api.StreamConfig) -> None:
        """Create a stream. Raises _OfflineError, which is retried, while a server that restarts or is busy counts as offline."""
        try:
            await self._connection.context.add_stream(config)
        except BadRequestError as error:
            if error.err_code == _NO_PEERS and _OFFLINE in (error.description or ""):
                raise _OfflineError(error.description) from None
            raise

    async def _change(self, change: _Change, config: api.StreamConfig) -> None:
        """Apply an idempotent change. Raises EngineError, _TakenError."""
        try:
            await self._connection.retry(partial(change, config))
        except BadRequestError as error:
            if error.err_code == _NAME_IN_USE:
                raise _TakenError from None
            need = f"{config.num_replicas} servers with JetStream and {config.placement.tags if config.placement else ''}"
            raise EngineError(f"{config.name}: {error.description}: provide {need} in one cluster") from None
        except NotFoundError as error:
            raise EngineError(f"{config.name}: {error.description}") from None


class _OfflineError(nats.errors.Error):
    """A server counts as offline, perhaps for a moment only."""


class _TakenError(Exception):
    """A stream with this name has another configuration."""


def tag(site: int) -> str:
    """Return the tag that ``server_tags`` of a site's servers must contain."""
    return f"site:{site}"


def _parse(info: api.StreamInfo) -> PlacementGroup | None:
    """Return the group of a stream; None if the stream is not one of a placement group."""
    matched = _NAME.fullmatch(info.config.name or "")
    if matched is None:
        return None
    try:
        sites = tuple(int(site) for site in json.loads(info.config.description or "")["sites"])
    except (ValueError, KeyError, TypeError):
        log.warning("%s: the description of the stream does not contain the sites", info.config.name)
        return None
    return PlacementGroup(matched[1], sites)
