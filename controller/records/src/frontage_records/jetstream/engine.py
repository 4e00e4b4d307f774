# SPDX-License-Identifier: Apache-2.0
"""The store on JetStream. All consistency models rest on the total order of each record's messages."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Protocol, TypeVar

from frontage_records.clock import HybridClock
from frontage_records.document import check_guid
from frontage_records.errors import ContentionError, EngineError, NotFoundError, OutcomeUnknownError, VersionError
from frontage_records.jetstream.connection import LOCAL_READ_TIMEOUT, OPERATION_TIMEOUT, Connection, OvertakenError
from frontage_records.jetstream.journal import Journal
from frontage_records.jetstream.local_writes import LocalWrites
from frontage_records.jetstream.locator import ATTEMPTS, RecordLocator
from frontage_records.jetstream.placement_groups import PlacementGroups
from frontage_records.jetstream.relay import Answer, Relay
from frontage_records.jetstream.repetition import Repetition
from frontage_records.jetstream.single_flight import SingleFlight
from frontage_records.jetstream.subscriptions import Subscriptions
from frontage_records.jetstream.write_cache import Location
from frontage_records.record import DEFAULT_BOUNDS, Bounds, Clock, Consistency, Record, Write, Written, apply, now_us
from frontage_records.ring import Ring
from frontage_records.store import Store
from frontage_records.watch import Watch

T = TypeVar("T")

_SPREAD, _LONGEST_SPREAD = 0.002, 0.25
"""Largest random delay in seconds before an overtaken write is tried again: after the first attempt, and after many."""
_REDIRECTS = 3
"""Sites to which an operation follows a record that moves, before this server runs the operation itself."""


class _MovedError(Exception):
    """Another site orders the record's writes."""


class _Here(Protocol):
    """Runs an operation at this server. ``redirects``: raises _MovedError if another site orders the record's writes."""

    async def __call__(self, *, redirects: bool = False, attempts: int = ATTEMPTS) -> Written | None: ...


class JetStream(Store):
    """A store that any number of servers share. Create it with `open`."""

    def __init__(self, connection: Connection, groups: PlacementGroups, own: int, bounds: Bounds, clock: Clock):
        super().__init__(bounds, clock)
        self.groups = groups
        self.connection = connection
        self.locator = RecordLocator(connection, groups, own)
        self._own = own
        self._relay = Relay(connection, own, self._relayed_write, self._relayed_read, self._relayed_place)
        self._repetition = Repetition(self._write_to_log)
        self._reads: SingleFlight[Record | None] = SingleFlight()
        # Separate from `_reads`, so that two servers that relay to each other cannot deadlock.
        self._reads_here: SingleFlight[Written | None] = SingleFlight()
        # For reads that must not be redirected any more.
        self._reads_anywhere: SingleFlight[Written | None] = SingleFlight()
        self._subscriptions = Subscriptions(connection, self._watches, self._found)
        journal = Journal(connection, own, groups.replicas)
        self._local = LocalWrites(self.locator, journal, HybridClock(clock), self._write_to_log, self._watches.offer, bounds)
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
        """Connect. ``own``: this server's site, one of ``sites``. ``serves``: accept operations from servers at other sites.

        Raises EngineError.
        """
        known = frozenset(sites)
        connection = await Connection.connect(servers)
        groups = PlacementGroups(connection, Ring(known, controllers), own, known, replicas)
        store = cls(connection, groups, own, bounds, clock)
        if not serves:
            return store
        try:
            await store._relay.start()
            await store._local.start()
        except BaseException:
            await connection.close()
            raise
        return store

    @property
    def own(self) -> int:
        """The site of this server."""
        return self._own

    async def ping(self, site: int) -> float | None:
        """Return the RTT to a record server of another site in seconds; None without an answer."""
        return await self._relay.ping(site)

    @property
    def unforwarded(self) -> int:
        return self._local.unforwarded

    async def sites(self, guid: str) -> tuple[int, ...]:
        """Return the record's sites as the nearest servers know them. While none answers, return those that were known last."""
        self._check_open()
        known = await self.locator.cached_group(check_guid(guid))
        try:
            async with asyncio.timeout(None if known is None else LOCAL_READ_TIMEOUT):
                location = await self.locator.find(guid, nearby=True)
                if location is None or location.record is None or location.record.document is None:
                    raise NotFoundError(f"no such record: {guid}")
                return (await self.groups.current(location.group)).sites
        except (TimeoutError, EngineError):
            if known is None:
                raise
            return known.sites

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
        self._repetition.close()
        await super().close()
        await self._subscriptions.close()
        await self._local.close()
        await self._relay.close()
        await self.groups.close()
        await self.connection.close()

    async def _read(self, guid: str) -> Record | None:
        self._check_open()
        if not self.locator.known_total(guid):
            record = await self._local.read(guid)
            if record is None or record.consistency is not Consistency.TOTAL:
                return record
        return await self._reads.do(guid, lambda: self._ordered(guid))

    async def _ordered(self, guid: str) -> Record | None:
        async def here(*, redirects: bool = False, attempts: int = ATTEMPTS) -> Written | None:
            flight = self._reads_here if redirects else self._reads_anywhere
            return await flight.do(guid, lambda: self._ordered_here(guid, redirects=redirects, attempts=attempts))

        try:
            found = await self._at_ordering_site(guid, here, lambda home: self._relay.read(home, guid))
        except OutcomeUnknownError:
            # A read has no side effects: repeat it here.
            found = await here()
        if found is None:
            return None
        self._repetition.learn(guid, found.record.version)
        return found.record

    async def _at_ordering_site(self, guid: str, here: _Here, ask: Callable[[int], Awaitable[Answer | None]]) -> Written | None:
        """Run an operation at the site that orders the record's writes, or at this server if no server there answers.

        ``here`` runs it at this server, and ``ask`` at the server of another site.
        """
        for _ in range(_REDIRECTS):
            home = await self._home(guid)
            if home is None:
                with contextlib.suppress(_MovedError):
                    return await here(redirects=True)
                continue
            answer = await ask(home)
            if answer is None:
                # Another server may write, perhaps one at that site that has come back.
                with contextlib.suppress(ContentionError):
                    return await here(attempts=1)
                continue
            self._learn(guid, answer)
            if not answer.has_moved:
                return answer.written
        return await here()

    async def _home(self, guid: str) -> int | None:
        """Return the site that orders the record's writes; None if it is this one or unknown."""
        group = await self.locator.known(guid)
        return None if group is None or group.sites[0] == self._own else group.sites[0]

    def _learn(self, guid: str, answer: Answer) -> None:
        if answer.at:
            self.locator.remember(guid, answer.at)

    async def _ordered_here(self, guid: str, *, redirects: bool = False, attempts: int = ATTEMPTS) -> Written | None:
        """Read as part of the total order, by writing a message. Raises _MovedError with ``redirects``.

        A deposed leader that does not know it yet would answer reads with old state, but it cannot commit a message.
        """

        async def step() -> Written | None:
            location = await self._location(guid, redirects=redirects)
            if location is None or location.record is None:
                return None
            await self._confirm(location, guid)
            return Written(location.record, applied=True)

        return await self._retry_overtaken(guid, step, attempts)

    async def _write(self, write: Write) -> Written:
        self._check_open()
        return await self._local.write(write) or await self._repetition.write(write)

    async def _write_to_log(self, write: Write) -> Written:
        """Add a write to the record's log, at the site that orders its writes if possible. May raise ForgottenError."""

        async def here(*, redirects: bool = False, attempts: int = ATTEMPTS) -> Written:
            return await self._write_here(write, redirects=redirects, attempts=attempts)

        written = await self._at_ordering_site(write.guid, here, lambda home: self._relay.write(home, write))
        assert written is not None
        return written

    async def _relayed_write(self, write: Write) -> Answer:
        return await self._or_moved(write.guid, lambda: self._write_here(write, redirects=True))

    async def _relayed_read(self, guid: str) -> Answer:
        def read() -> Awaitable[Written | None]:
            return self._reads_here.do(guid, lambda: self._ordered_here(guid, redirects=True))

        return await self._or_moved(guid, read)

    async def _or_moved(self, guid: str, operation: Callable[[], Awaitable[Written | None]]) -> Answer:
        """Run an operation of another site. If the record is ordered elsewhere, return where, with nothing done.

        A distant server would lose against those near the leader, attempt after attempt.
        """
        if await self._home(guid) is not None:
            # The sender believes that this site orders the record, and may know better.
            await self.locator.find(guid)
        try:
            written = await operation()
        except _MovedError:
            return Answer(None, await self._at(guid), has_moved=True)
        return Answer(written, await self._at(guid))

    async def _relayed_place(self, guid: str, sites: Collection[int]) -> Answer:
        await self._place_here(guid, sites)
        return Answer(None, await self._at(guid))

    async def _place_here(self, guid: str, sites: Collection[int]) -> None:
        await self.locator.move(guid, list(sites))

    async def _at(self, guid: str) -> str:
        group = await self.locator.known(guid)
        return "" if group is None else group.name

    async def _location(self, guid: str, *, make: bool = False, redirects: bool) -> Location | None:
        """Return the record's location from the write cache or its log. ``redirects``: raises _MovedError if it is ordered elsewhere."""
        if redirects and await self._home(guid) is not None:
            raise _MovedError
        location = await self.locator.cached_location(guid, make=make)
        if redirects and location is not None and location.group.sites[0] != self._own:
            raise _MovedError
        return location

    async def _write_here(self, write: Write, *, redirects: bool = False, attempts: int = ATTEMPTS) -> Written:
        """Write from this server. Raises ForgottenError, and _MovedError with ``redirects``."""

        async def step() -> Written:
            location = await self._location(write.guid, make=True, redirects=redirects)
            if location is None:
                raise EngineError(f"{write.guid}: its stream has just been deleted: try again")
            entry = location.tail.entry
            if (first := entry.memory.result(write, entry.record)) is not None:
                return first
            try:
                written = apply(location.record, write, self.clock(), self.bounds)
            except (VersionError, NotFoundError):
                # A refusal reveals the record's state, so it must be ordered like a read.
                if location.record is not None:
                    await self._confirm(location, write.guid)
                raise
            if written.record is not location.record:
                memory = entry.memory.with_(write, written.record)
                await self.locator.append(location, write.guid, replace(entry, record=written.record, memory=memory))
            elif self.locator.invalidate(write.guid):
                # The write loses, so nothing is appended: the leader has to confirm the winner.
                return await step()
            return written

        if not write.is_forwarded:
            # A closing server still forwards.
            self._check_open()
        check_guid(write.guid)
        return await self._retry_overtaken(write.guid, step, attempts)

    async def _confirm(self, location: Location, guid: str) -> None:
        """Append the same entry again. Raises OvertakenError if it is no longer the last."""
        await self.locator.append(location, guid, location.tail.entry)

    async def _retry_overtaken(self, guid: str, step: Callable[[], Awaitable[T]], attempts: int) -> T:
        deadline = asyncio.get_running_loop().time() + OPERATION_TIMEOUT
        async with self.locator.locks.hold(guid):
            for attempt in range(attempts):
                try:
                    return await step()
                except OvertakenError:
                    if asyncio.get_running_loop().time() > deadline:
                        break
                    # Another server came first. Random delays spread the retries of many servers.
                    await asyncio.sleep(random.uniform(0, min(_SPREAD * 2**attempt, _LONGEST_SPREAD)))
        raise ContentionError(f"{guid}: too many concurrent writes: try again")

    @asynccontextmanager
    async def _subscribe(self, guid: str) -> AsyncIterator[Watch]:
        self._check_open()
        await self._subscriptions.begin(guid)
        try:
            async with super()._subscribe(guid) as watch:
                yield watch
        finally:
            await self._subscriptions.end(guid)

    async def _found(self, guid: str) -> Record | None:
        location = await self.locator.find(guid)
        return None if location is None else location.record

    def _check_open(self) -> None:
        if self._closed:
            raise EngineError(f"{self.connection.where}: the connection is closed")
