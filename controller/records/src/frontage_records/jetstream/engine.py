"""The store on JetStream: the consistencies, of the groups' one order of each record's messages."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

from frontage_records.document import check_guid
from frontage_records.errors import ContentionError, EngineError, NotFoundError, OutcomeUnknownError, VersionError
from frontage_records.jetstream.connection import PATIENCE, Link, OvertakenError
from frontage_records.jetstream.entry import Entry
from frontage_records.jetstream.placement_groups import ATTEMPTS, Groups
from frontage_records.jetstream.relay import Answer, Relay
from frontage_records.jetstream.single_flight import Together
from frontage_records.jetstream.streams import Classes
from frontage_records.jetstream.subscriptions import Following
from frontage_records.jetstream.write_cache import Place
from frontage_records.record import DEFAULT_BOUNDS, Bounds, Clock, Consistency, Record, Write, Written, apply, now_us
from frontage_records.ring import Ring
from frontage_records.store import Store
from frontage_records.watch import Watch

T = TypeVar("T")

_SPREAD, _LONGEST_SPREAD = 0.002, 0.25
"""Seconds, at most, before a write that was overtaken is tried again: after the first time, and after many."""


class JetStream(Store):
    """Any number of servers share one JetStream. Make it with `open`."""

    def __init__(self, link: Link, classes: Classes, own: int, bounds: Bounds, clock: Clock):
        super().__init__(bounds, clock)
        self.classes = classes
        self.link = link
        self.groups = Groups(link, classes, own)
        self._own = own
        self._relay = Relay(link, own, self._relayed_write, self._relayed_read, self._relayed_place)
        self._reads: Together[Record | None] = Together()
        # Apart: two servers that take each other for the nearer one do not wait for each other.
        self._reads_here: Together[Record | None] = Together()
        self._following = Following(link, self._watches, self._found)
        self._closed = False

    @classmethod
    async def open(
        cls,
        servers: list[str],
        own: int,
        sites: Iterable[int],
        *,
        replicas: int = 3,
        controllers: int = 3,
        serves: bool = True,
        bounds: Bounds = DEFAULT_BOUNDS,
        clock: Clock = now_us,
    ) -> JetStream:
        """``own``: this server's site, among ``sites``; ``serves``: it does what other sites' servers leave to that. Raises
        EngineError."""
        known = frozenset(sites)
        link = await Link.connect(servers)
        classes = Classes(link, Ring(known, controllers), own, known, replicas)
        store = cls(link, classes, own, bounds, clock)
        if not serves:
            return store
        try:
            await store._relay.start()
        except BaseException:
            await link.close()
            raise
        return store

    async def sites(self, guid: str) -> tuple[int, ...]:
        await self.get(guid)
        place = await self.groups.find(guid)
        if place is None:
            raise NotFoundError(f"there is no record {guid}")
        # Another server may have moved the class as a whole.
        self.classes.forget(place.group.name)
        return (await self.classes.get(place.group.name) or place.group).sites

    async def place(self, guid: str, sites: Collection[int]) -> None:
        self._check_open()
        home = await self._home(check_guid(guid))
        if home is not None:
            answer = await self._relay.place(home, guid, sites)
            if answer is not None:
                self._learn(guid, answer)
                return
        await self._place_here(guid, sites)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await super().close()
        await self._following.close()
        await self._relay.close()
        await self.classes.close()
        await self.link.close()

    async def _read(self, guid: str) -> Record | None:
        self._check_open()
        if not self.groups.known_total(guid):
            place = await self.groups.find(guid, nearby=True)
            if place is None or place.record is None or place.record.consistency is not Consistency.TOTAL:
                return None if place is None else place.record
        return await self._reads.do(guid, lambda: self._ordered(guid))

    async def _ordered(self, guid: str) -> Record | None:
        home = await self._home(guid)
        if home is not None:
            with contextlib.suppress(OutcomeUnknownError):
                # Of a read, nothing is unknown: it can be done again here.
                answer = await self._relay.read(home, guid)
                if answer is not None:
                    self._learn(guid, answer)
                    return None if answer.written is None else answer.written.record
        return await self._reads_here.do(guid, lambda: self._ordered_here(guid))

    async def _home(self, guid: str) -> int | None:
        """The site that has the record's order, if it is another than this."""
        group = await self.groups.known(guid)
        return None if group is None or group.sites[0] == self._own else group.sites[0]

    def _learn(self, guid: str, answer: Answer) -> None:
        if answer.at:
            self.groups.remember(guid, answer.at)

    async def _ordered_here(self, guid: str) -> Record | None:
        """The read has its own place in the order, between the writes: a leader that is none any longer, without knowing it yet,
        would answer with what has been; but it cannot get a message through."""

        async def step() -> Record | None:
            place = await self.groups.head(guid)
            if place is None or place.record is None:
                return None
            await self._mark(place, guid)
            return place.record

        return await self._until_first(guid, step)

    async def _write(self, write: Write) -> Written:
        self._check_open()
        home = await self._home(write.guid)
        if home is not None:
            answer = await self._relay.write(home, write)
            if answer is not None and answer.written is not None:
                self._learn(write.guid, answer)
                return answer.written
        return await self._write_here(write)

    async def _relayed_write(self, write: Write) -> Answer:
        written = await self._write_here(write)
        return Answer(written, await self._at(write.guid))

    async def _relayed_read(self, guid: str) -> Answer:
        record = await self._reads_here.do(guid, lambda: self._ordered_here(guid))
        return Answer(None if record is None else Written(record, applied=True), await self._at(guid))

    async def _relayed_place(self, guid: str, sites: Collection[int]) -> Answer:
        await self._place_here(guid, sites)
        return Answer(None, await self._at(guid))

    async def _place_here(self, guid: str, sites: Collection[int]) -> None:
        async with self.groups.turn(guid):
            await self.groups.move(guid, list(sites))

    async def _at(self, guid: str) -> str:
        group = await self.groups.known(guid)
        return "" if group is None else group.name

    async def _write_here(self, write: Write) -> Written:
        async def step() -> Written:
            place = await self.groups.head(write.guid, make=True)
            if place is None:
                raise EngineError(f"{write.guid}: its stream has been deleted in this moment")
            try:
                written = apply(place.record, write, self.clock(), self.bounds)
            except (VersionError, NotFoundError):
                # A refusal says what there is, and is a read.
                if place.record is not None:
                    await self._mark(place, write.guid)
                raise
            if written.record is not place.record:
                await self.groups.follow(place, write.guid, Entry(place.tip.entry.epoch, written.record))
            elif self.groups.doubt(write.guid):
                # It loses, so nothing is written behind what won: the leader has to say which that is.
                return await step()
            return written

        self._check_open()
        check_guid(write.guid)
        return await self._until_first(write.guid, step)

    async def _mark(self, place: Place, guid: str) -> None:
        """The same again. Raises OvertakenError if that is no longer the last."""
        await self.groups.follow(place, guid, place.tip.entry)

    async def _until_first(self, guid: str, step: Callable[[], Awaitable[T]]) -> T:
        deadline = asyncio.get_running_loop().time() + PATIENCE
        async with self.groups.turn(guid):
            for attempt in range(ATTEMPTS):
                try:
                    return await step()
                except OvertakenError:
                    if asyncio.get_running_loop().time() > deadline:
                        break
                    # By another server. Of many, one comes first each time; so they spread out.
                    await asyncio.sleep(random.uniform(0, min(_SPREAD * 2**attempt, _LONGEST_SPREAD)))
        raise ContentionError(f"{guid}: others wrote first, each time; try again")

    @asynccontextmanager
    async def _subscribe(self, guid: str) -> AsyncIterator[Watch]:
        self._check_open()
        await self._following.begin(guid)
        try:
            async with super()._subscribe(guid) as watch:
                yield watch
        finally:
            await self._following.end(guid)

    async def _found(self, guid: str) -> Record | None:
        place = await self.groups.find(guid)
        return None if place is None else place.record

    def _check_open(self) -> None:
        if self._closed:
            raise EngineError(f"{self.link.where}: the connection is closed")
