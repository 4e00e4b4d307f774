"""Classes of placement: a stream whose Raft group is at one site, and a mirror of it at each of the others.

A class is called ``p`` and the number of a partition, where records are when they are new and where it stands afterwards where they
went; or ``c`` and a number, one for each list of sites that records were moved to. Where it is, its stream's description says, so a
class can move as a whole and keep its name.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from nats.js import api
from nats.js.errors import BadRequestError, NotFoundError

from frontage_records.errors import EngineError, SiteError
from frontage_records.jetstream.connection import Link
from frontage_records.jetstream.log import HISTORY
from frontage_records.ring import Ring, partition

log = logging.getLogger(__name__)

_PREFIX = "records-"
CHANGES = "records-changes"
"""What a stream has stored is told under this subject and the record's token, to whoever listens."""
_Change: TypeAlias = Callable[[api.StreamConfig], Awaitable[object]]
_NAME_IN_USE = 10058
_NAME = re.compile(r"records-(c(\d+)|p\d+)")


def token(guid: str) -> str:
    """A GUID as one word of a subject, where a dot would part words; '%' is in no GUID."""
    return guid.replace(".", "%")


@dataclass(frozen=True, slots=True)
class StreamClass:
    name: str
    sites: tuple[int, ...]
    """That of the Raft group first; then those of the mirrors."""

    @property
    def stream(self) -> str:
        return _PREFIX + self.name

    def mirror(self, site: int) -> str:
        return f"{self.stream}-at-{site}"

    def subject(self, guid: str) -> str:
        return f"records.{self.name}.{token(guid)}"


class Classes:
    """As far as this server knows them. What is remembered may be old: whoever finds it so says `forget`."""

    def __init__(self, link: Link, ring: Ring, own: int, sites: frozenset[int], replicas: int):
        self._link = link
        self._ring = ring
        self._own = own
        self._sites = sites
        self._replicas = replicas
        self._known: dict[str, StreamClass] = {}
        self._seen: dict[str, StreamClass] = {}
        self._mirrors: dict[str, asyncio.Task[None]] = {}

    async def close(self) -> None:
        tasks = list(self._mirrors.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def forget(self, name: str) -> None:
        self._known.pop(name, None)

    async def get(self, name: str) -> StreamClass | None:
        """None if there is no such class. Raises EngineError."""
        found = self._known.get(name)
        if found is None:
            try:
                info = await self._link.ask(lambda: self._link.streams.stream_info(_PREFIX + name))
            except NotFoundError:
                return None
            found = _class(info)
            if found is not None:
                self._mirror_here(found)
                self._known[name] = found
        return found

    async def partition(self, guid: str, *, make: bool) -> StreamClass | None:
        """Where the record is when it is new: with its replica-controllers (section 1.2). None if nothing ever was there."""
        part = partition(guid)
        name = f"p{part}"
        found = await self.get(name)
        if found is None and make:
            try:
                found = await self._make(StreamClass(name, self._ring.controllers(part)))
            except _TakenError:
                # Another server made it in this moment, and knows other sites.
                found = await self.get(name)
        return found

    async def at(self, sites: Sequence[int]) -> StreamClass:
        """The class of exactly these sites; a new one if there is none. Raises SiteError, EngineError."""
        wanted = tuple(sites)
        self._check(wanted)
        while True:
            names = await self._names()
            for name in names:
                if (await self._seen_before(name)).sites != wanted:
                    continue
                # Another server may have moved it since.
                self._seen.pop(name)
                found = await self._seen_before(name)
                if found.sites == wanted:
                    self._known[name] = found
                    return found
            number = 1 + max((int(name[1:]) for name in names if name.startswith("c")), default=0)
            try:
                return await self._make(StreamClass(f"c{number}", wanted))
            except _TakenError:
                # By another server, for other sites.
                continue

    async def move(self, name: str, sites: Sequence[int]) -> StreamClass:
        """Move a class as a whole; it goes on serving meanwhile. Returns once it is started; `moves` waits until it is done.

        Raises SiteError, EngineError."""
        moved = StreamClass(name, tuple(sites))
        self._check(moved.sites)
        before = await self.get(name)
        if before is None:
            raise EngineError(f"there is no class {name}")
        await self._change(self._link.streams.update_stream, self._config(moved))
        for site in moved.sites[1:]:
            await self._make_mirror(moved, site)
        for site in {*before.sites, *moved.sites} - set(moved.sites[1:]):
            try:
                await self._link.ask(partial(self._link.streams.delete_stream, moved.mirror(site)))
            except NotFoundError:
                continue
        self._known[name] = moved
        return moved

    def _check(self, sites: tuple[int, ...]) -> None:
        unknown = sorted(set(sites) - self._sites)
        if unknown:
            known = ", ".join(map(str, sorted(self._sites)))
            raise SiteError(f"there is no site {unknown[0]}; known are: {known}")

    async def every(self) -> list[StreamClass]:
        """All that there are. Raises EngineError."""
        self._seen.clear()
        return [await self._seen_before(name) for name in await self._names()]

    async def _names(self) -> list[str]:
        """Of all classes. Only names: the whole list comes late, and is given up, where one server that has a mirror is down."""
        found = await self._link.names()
        return [matched[1] for name in found if (matched := _NAME.fullmatch(name)) is not None]

    async def _seen_before(self, name: str) -> StreamClass:
        """As it was when this server first looked. Raises EngineError."""
        if name not in self._seen:
            try:
                info = await self._link.ask(lambda: self._link.streams.stream_info(_PREFIX + name))
            except NotFoundError:
                raise EngineError(f"the class {name} has been deleted in this moment") from None
            self._seen[name] = _class(info) or StreamClass(name, ())
        return self._seen[name]

    async def _make(self, one: StreamClass) -> StreamClass:
        """Raises _TakenError if the name has other sites."""
        await self._change(self._link.streams.add_stream, self._config(one))
        for site in one.sites[1:]:
            await self._make_mirror(one, site)
        self._known[one.name] = one
        return one

    def _mirror_here(self, one: StreamClass) -> None:
        """Who made the class may have been stopped in the middle. Nobody waits: where the server that has the mirror is down, this
        is tried for long, and reads go to the origin."""
        if self._own in one.sites[1:] and one.name not in self._mirrors:
            task = self._mirrors[one.name] = asyncio.create_task(self._make_mirror(one, self._own))
            task.add_done_callback(lambda _: self._mirrors.pop(one.name, None))

    async def _make_mirror(self, one: StreamClass, site: int) -> None:
        """A site that is down gets its mirror later: reads go to the origin meanwhile."""
        config = api.StreamConfig(
            name=one.mirror(site),
            mirror=api.StreamSource(name=one.stream),
            storage=api.StorageType.FILE,
            num_replicas=1,
            max_msgs_per_subject=HISTORY,
            placement=api.Placement(tags=[tag(site)]),
            allow_direct=True,
        )
        try:
            await self._change(self._link.streams.add_stream, config)
        except (EngineError, _TakenError) as error:
            log.warning("%s: no mirror at site %d: %s", one.stream, site, error)

    def _config(self, one: StreamClass) -> api.StreamConfig:
        return api.StreamConfig(
            name=one.stream,
            description=json.dumps({"sites": one.sites}),
            subjects=[one.subject("*")],
            storage=api.StorageType.FILE,
            num_replicas=self._replicas,
            max_msgs_per_subject=HISTORY,
            placement=api.Placement(tags=[tag(one.sites[0])]),
            republish=api.RePublish(src=one.subject("*"), dest=f"{CHANGES}.{{{{wildcard(1)}}}}"),
            # Only the leader answers reads: others may not have the last write yet.
            allow_direct=False,
        )

    async def _change(self, change: _Change, config: api.StreamConfig) -> None:
        """Asked again, it is the same change. Raises EngineError, _TakenError."""
        try:
            await self._link.ask(partial(change, config))
        except BadRequestError as error:
            if error.err_code == _NAME_IN_USE:
                raise _TakenError from None
            need = f"{config.num_replicas} servers with JetStream and {config.placement.tags if config.placement else ''}"
            raise EngineError(f"{config.name}: {error.description}; it needs {need} in one cluster") from None
        except NotFoundError as error:
            raise EngineError(f"{config.name}: {error.description}") from None


class _TakenError(Exception):
    """A stream of this name has another configuration."""


def tag(site: int) -> str:
    """What ``server_tags`` of a site's servers must have."""
    return f"site:{site}"


def _class(info: api.StreamInfo) -> StreamClass | None:
    """None if the stream is no class's."""
    matched = _NAME.fullmatch(info.config.name or "")
    if matched is None:
        return None
    try:
        sites = tuple(int(site) for site in json.loads(info.config.description or "")["sites"])
    except (ValueError, KeyError, TypeError):
        log.warning("%s: its description does not say where it is", info.config.name)
        return None
    return StreamClass(matched[1], sites)
