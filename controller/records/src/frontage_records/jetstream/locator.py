# SPDX-License-Identifier: Apache-2.0
"""Finds records across placement groups, and moves them without losing or reordering an update (Auspice, section 1.2.4).

A move commits a stop request as the record's last update in the old group, with the record's state, and then starts the record in the
new group from it. The rest follows from the rule that each write names the message that it follows: a late write finds the stop
request before it, is refused, and goes to the new group. Any server that finds a stop request without a start in the new group starts
the record there, so a server that fails during a move blocks no one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from secrets import token_hex

from frontage_records.errors import ContentionError, EngineError, NotFoundError, OutcomeUnknownError
from frontage_records.jetstream.connection import OPERATION_TIMEOUT, Connection, InFlightError, NoAnswerError, OvertakenError
from frontage_records.jetstream.entry import Entry
from frontage_records.jetstream.guid_locks import GuidLocks
from frontage_records.jetstream.log import RETRY_DELAY, LogReader, Tail, TrimmedError, find_successor, find_tail
from frontage_records.jetstream.placement_groups import PlacementGroup, PlacementGroups
from frontage_records.jetstream.write_cache import Location, WriteCache
from frontage_records.record import Consistency

ATTEMPTS = 100
"""Attempts before an operation fails because other writers came first."""
_MAX_CACHED = 100_000
"""Records whose placement group is cached: the cached set of active replicas of Auspice, section 1.2.2."""


class RecordLocator:
    """Finds, extends and moves the logs of records."""

    def __init__(self, connection: Connection, groups: PlacementGroups, own: int):
        self._connection = connection
        self._groups = groups
        self._own = own
        self._cached: OrderedDict[str, str] = OrderedDict()
        self._write_cache = WriteCache()
        self.locks = GuidLocks()
        """Held while using `append`, so that writes of this server do not overtake each other."""

    async def cached_location(self, guid: str, *, make: bool = False) -> Location | None:
        """Return the location from the write cache, or else from `find`.

        Unconfirmed: do not return it to a client before a later write has succeeded.
        """
        return self._write_cache.get(guid) or await self.find(guid, make=make)

    async def known(self, guid: str) -> PlacementGroup | None:
        """Return the record's group as cached, or that of its partition; None if the partition has none yet. Raises EngineError."""
        return await self.cached_group(guid) or await self._groups.partition(guid, make=False)

    async def find(self, guid: str, *, nearby: bool = False, make: bool = False) -> Location | None:
        """Return the record's location as known by the leaders, or with ``nearby`` by a mirror at this site, if it has the record.

        None if the record's partition has no group; ``make`` creates it. Raises EngineError.
        """
        group = await self.cached_group(guid)
        direct = group is None
        if group is None:
            group = await self._groups.partition(guid, make=make)
        if group is None:
            return None
        # The stop request that led here. The entry here must have reached its epoch.
        stop = Entry(0, None)
        hops = 0
        while hops < ATTEMPTS:
            hops += 1
            location = await self._last(group, guid, stop.epoch, nearby=nearby)
            if location.tail.sequence == 0 and not direct:
                # The cached group is wrong: start from the partition.
                self._cached.pop(guid, None)
                return await self.find(guid, nearby=nearby, make=make)
            if stop.to is not None and (location.tail.sequence == 0 or location.tail.entry.epoch < stop.epoch):
                await self._start(location, guid, stop)
                continue
            if location.tail.entry.to is None:
                self.remember(guid, group.name)
                return location
            stop, direct = location.tail.entry, True
            next_ = await self._groups.get(location.tail.entry.to)
            if next_ is None:
                raise EngineError(
                    f"{guid}: the record has moved to {location.tail.entry.to}, which does not exist: restore that stream"
                )
            group = next_
        raise ContentionError(f"{guid}: the record moves faster than it can be followed: try again")

    def invalidate(self, guid: str) -> bool:
        """Remove the record from the write cache, so that the leader is queried next. Returns whether it was cached."""
        was_cached = self._write_cache.get(guid) is not None
        self._write_cache.drop(guid)
        return was_cached

    def known_total(self, guid: str) -> bool:
        """Return whether the write cache shows that the record is ``total``, which never changes."""
        location = self._write_cache.get(guid)
        return location is not None and location.record is not None and location.record.consistency is Consistency.TOTAL

    async def append(self, location: Location, guid: str, entry: Entry) -> None:
        """Append ``entry`` after the tail of ``location``. Raises OvertakenError, OutcomeUnknownError, EngineError."""
        group = location.group
        # Until the write is known to be done, the tail is unknown.
        self._write_cache.drop(guid)
        entry = replace(entry, after=location.tail.sequence, last=location.tail.last, write=token_hex(8))
        sequence = await self._written(
            LogReader(self._connection, group.stream, group.subject(guid)), guid, entry, location.tail.last
        )
        if sequence is not None and entry.to is None:
            self._write_cache.put(guid, Location(group, Tail(sequence, entry, sequence)))

    async def _written(self, reader: LogReader, guid: str, entry: Entry, last: int) -> int | None:
        """Publish until the outcome is known. Returns the sequence number; None if the entry is stored but may not be the last.

        Raises the errors of `append`.
        """
        repeated, doubt = False, ""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + OPERATION_TIMEOUT
        while True:
            try:
                # Repeating is safe: only the first entry that follows is valid, so the write takes effect once.
                return await self._connection.publish(reader.subject, entry.encode(), last, entry.write)
            except OvertakenError:
                # A server that has stored this message accepts it again instead.
                if not doubt:
                    raise
            except InFlightError:
                pass
            except NoAnswerError as error:
                doubt = str(error)
            except EngineError as error:
                raise _unknown(guid, error) if repeated else error from None
            repeated = True
            if doubt:
                first, last_read = await _successor(reader, guid, entry.after)
                if first is not None:
                    if first.write != entry.write:
                        raise OvertakenError
                    return None
                if last_read > last:
                    # Invalid messages come in between.
                    last = last_read
                    entry = replace(entry, last=last)
            if loop.time() > deadline:
                raise _unknown(guid, doubt or "refused without a newer message")
            await asyncio.sleep(RETRY_DELAY)

    async def move(self, guid: str, sites: Sequence[int]) -> None:
        """Move a record to ``sites``.

        Raises NotFoundError, SiteError, ContentionError, OutcomeUnknownError, EngineError.
        """
        if (await self._existing(guid)).group.sites == tuple(sites):
            return
        # Without the lock: a new group takes seconds, for which the record's operations must not wait.
        target = await self._groups.at(sites)
        async with self.locks.hold(guid):
            await self._move_to(guid, target)

    async def _move_to(self, guid: str, target: PlacementGroup) -> None:
        for _ in range(ATTEMPTS):
            location = await self._existing(guid)
            if location.group.name == target.name:
                # Another server has moved the record, or the whole group, there.
                return
            stop = replace(location.tail.entry, epoch=location.tail.entry.epoch + 1, to=target.name)
            try:
                await self.append(location, guid, stop)
            except OvertakenError:
                continue
            # Finding the record starts it in the new group.
            await self.find(guid)
            await self._update_pointer(guid, stop.epoch, target)
            return
        raise ContentionError(f"{guid}: other writers came first {ATTEMPTS} times: try again")

    async def _existing(self, guid: str) -> Location:
        """Return the record's location as known by the leaders. Raises NotFoundError."""
        location = await self.find(guid)
        if location is None or location.record is None or location.record.document is None:
            raise NotFoundError(f"no such record: {guid}")
        return location

    async def _last(self, group: PlacementGroup, guid: str, epoch: int, *, nearby: bool) -> Location:
        """Return the record's tail in a group. A mirror that has not reached ``epoch`` is not used."""
        if nearby and self._own in group.sites[1:]:
            try:
                found = await find_tail(
                    LogReader(self._connection, group.mirror(self._own), group.subject(guid), nearby=True), guid
                )
            except TimeoutError:
                # The mirror does not exist: the group may have moved.
                self._groups.refresh(group)
            else:
                if found.sequence and found.entry.epoch >= epoch:
                    return Location(group, found)
        return Location(group, await find_tail(LogReader(self._connection, group.stream, group.subject(guid)), guid))

    async def _start(self, location: Location, guid: str, stop: Entry) -> None:
        """Start the record in a group after a stop request."""
        if stop.record is None:
            raise EngineError(f"{guid}: the record has moved to {location.group.name}, but is missing there: restore that stream")
        with contextlib.suppress(OvertakenError):
            # If overtaken, another server has started it.
            await self.append(location, guid, replace(stop, to=None))

    async def _update_pointer(self, guid: str, epoch: int, target: PlacementGroup) -> None:
        """Let the group of the record's partition name its present group, which shortens later searches."""
        group = await self._groups.partition(guid, make=False)
        if group is None or group == target:
            return
        location = await self._last(group, guid, 0, nearby=False)
        if location.tail.entry.to is not None and location.tail.entry.epoch <= epoch:
            with contextlib.suppress(OvertakenError):
                await self.append(location, guid, Entry(epoch, None, target.name))

    async def cached_group(self, guid: str) -> PlacementGroup | None:
        """Return the record's group as cached. Raises EngineError."""
        name = self._cached.get(guid)
        return None if name is None else await self._groups.get(name)

    def remember(self, guid: str, name: str) -> None:
        """Cache the record's group."""
        self._cached[guid] = name
        self._cached.move_to_end(guid)
        if len(self._cached) > _MAX_CACHED:
            self._cached.popitem(last=False)


async def _successor(reader: LogReader, guid: str, after: int) -> tuple[Entry | None, int]:
    """Call `find_successor` for a write that may be done: each error means that its outcome is unknown."""
    try:
        return await find_successor(reader, guid, after)
    except TrimmedError:
        raise _unknown(guid, "too many writes since") from None
    except EngineError as error:
        raise _unknown(guid, error) from None


def _unknown(guid: str, why: object) -> OutcomeUnknownError:
    return OutcomeUnknownError(f"{guid}: {why}: read the record to find out whether it was written")
