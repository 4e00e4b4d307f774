"""Where a record is, from group to group: finding it, and moving it with no update lost or reordered (section 1.2.4).

A move commits a stop request as the last update of the old group, with the record as that left it, and then starts the new group
from it. Everything else follows from each write naming the message that it follows: a write that is late finds the stop request in
front of it, is refused, and goes to the new group. Whoever finds a stop request whose new group is not started yet starts it, so a
mover that dies in between leaves nobody waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from secrets import token_hex
from weakref import WeakValueDictionary

from frontage_records.errors import ContentionError, EngineError, NotFoundError, OutcomeUnknownError
from frontage_records.jetstream.connection import PATIENCE, CrowdedError, Link, NoAnswerError, OvertakenError
from frontage_records.jetstream.entry import Entry
from frontage_records.jetstream.log import PAUSE, GoneError, Source, Tip, follower, tip
from frontage_records.jetstream.streams import Classes, StreamClass
from frontage_records.jetstream.write_cache import Heads, Place
from frontage_records.record import Consistency

ATTEMPTS = 100
"""Times that others may come first, before it is given up."""
_REMEMBERED = 100_000
"""Records whose class is remembered: the cached set of active replicas of section 1.2.2."""


class Groups:
    def __init__(self, link: Link, classes: Classes, own: int):
        self._link = link
        self._classes = classes
        self._own = own
        self._at: OrderedDict[str, str] = OrderedDict()
        self._heads = Heads()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, guid: str) -> AsyncIterator[None]:
        """To be held by whoever uses `follow`: this server's own do not overtake each other. Raises ContentionError."""
        lock = self._turns.setdefault(guid, asyncio.Lock())
        try:
            async with asyncio.timeout(PATIENCE):
                await lock.acquire()
        except TimeoutError:
            raise ContentionError(f"{guid}: those before were not done in {PATIENCE:g} s; try again") from None
        try:
            yield
        finally:
            lock.release()

    async def head(self, guid: str, *, make: bool = False) -> Place | None:
        """What this server wrote last, if it did; else like `find`. To be told to nobody before something is written behind it."""
        return self._heads.get(guid) or await self.find(guid, make=make)

    async def known(self, guid: str) -> StreamClass | None:
        """Where it is as far as this server knows, without a look; None if it has no partition yet. Raises EngineError."""
        return await self._remembered(guid) or await self._classes.partition(guid, make=False)

    async def find(self, guid: str, *, nearby: bool = False, make: bool = False) -> Place | None:
        """By the leaders' words, or with ``nearby`` by a mirror's at this site, where there is one and it has the record.

        None if nothing ever was in the record's partition; ``make`` makes that. Raises EngineError.
        """
        group = await self._remembered(guid)
        direct = group is None
        if group is None:
            group = await self._classes.partition(guid, make=make)
        if group is None:
            return None
        # The entry that led here, and its epoch, which the one here must have reached.
        stop = Entry(0, None)
        hops = 0
        while hops < ATTEMPTS:
            hops += 1
            place = await self._last(group, guid, stop.epoch, nearby=nearby)
            if place.tip.sequence == 0 and not direct:
                # Remembered wrongly. Its partition knows.
                self._at.pop(guid, None)
                return await self.find(guid, nearby=nearby, make=make)
            if stop.to is not None and (place.tip.sequence == 0 or place.tip.entry.epoch < stop.epoch):
                await self._start(place, guid, stop)
                continue
            if place.tip.entry.to is None:
                self.remember(guid, group.name)
                return place
            stop, direct = place.tip.entry, True
            next_ = await self._classes.get(place.tip.entry.to)
            if next_ is None:
                raise EngineError(f"{guid}: has moved to {place.tip.entry.to}, which is not there; who has deleted that stream?")
            group = next_
        raise ContentionError(f"{guid}: moves faster than it can be followed; try again")

    def doubt(self, guid: str) -> bool:
        """Let the leader be asked next. Whether it would not have been."""
        known = self._heads.get(guid) is not None
        self._heads.drop(guid)
        return known

    def known_total(self, guid: str) -> bool:
        """Whether this server has written it, and it is ``total``: records are so for life."""
        place = self._heads.get(guid)
        return place is not None and place.record is not None and place.record.consistency is Consistency.TOTAL

    async def follow(self, place: Place, guid: str, entry: Entry) -> None:
        """Write ``entry`` behind what was found there. Raises OvertakenError, OutcomeUnknownError, EngineError."""
        group = place.group
        # Until it is known to be done, this server does not know either what is last.
        self._heads.drop(guid)
        entry = replace(entry, after=place.tip.sequence, last=place.tip.last, write=token_hex(8))
        sequence = await self._written(Source(self._link, group.stream, group.subject(guid)), guid, entry, place.tip.last)
        if sequence is not None and entry.to is None:
            self._heads.put(guid, Place(group, Tip(sequence, entry, sequence)))

    async def _written(self, source: Source, guid: str, entry: Entry, last: int) -> int | None:
        """The sequence number that it got; None: it is there, but perhaps no longer the last. Raises as `follow` does."""
        again, doubt = False, ""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE
        while True:
            try:
                # Again, where nobody has answered: only the first that follows counts, so it is done once.
                return await self._link.publish(source.subject, entry.encode(), last)
            except OvertakenError:
                if not again:
                    raise
            except CrowdedError:
                pass
            except NoAnswerError as error:
                doubt = str(error)
            except EngineError as error:
                raise _unknown(guid, error) if again else error from None
            again = True
            try:
                first, seen = await follower(source, guid, entry.after)
            except GoneError:
                if not doubt:
                    # Where so many come at once, it was one of theirs that was on its way.
                    raise OvertakenError from None
                raise _unknown(guid, "many have written since") from None
            except EngineError as error:
                raise _unknown(guid, error) from None
            if first is not None:
                if first.write != entry.write:
                    raise OvertakenError
                return None
            if loop.time() > deadline:
                raise _unknown(guid, doubt or "refused, and nobody has written")
            if seen > last:
                # Behind messages that are none of ours.
                last = seen
                entry = replace(entry, last=last)
            await asyncio.sleep(PAUSE)

    async def move(self, guid: str, sites: Sequence[int]) -> None:
        """Raises NotFoundError, SiteError, ContentionError, OutcomeUnknownError, EngineError."""
        for _ in range(ATTEMPTS):
            place = await self.find(guid)
            if place is None or place.record is None or place.record.document is None:
                raise NotFoundError(f"there is no record {guid}")
            if place.group.sites == tuple(sites):
                return
            target = await self._classes.at(sites)
            if target.name == place.group.name:
                # Another server has moved the class there as a whole.
                return
            stop = Entry(place.tip.entry.epoch + 1, place.record, target.name)
            try:
                await self.follow(place, guid, stop)
            except OvertakenError:
                continue
            # Who finds it, starts the new group.
            await self.find(guid)
            await self._point(guid, stop.epoch, target)
            return
        raise ContentionError(f"{guid}: others wrote first, {ATTEMPTS} times; try again")

    async def _last(self, group: StreamClass, guid: str, epoch: int, *, nearby: bool) -> Place:
        """A mirror that has not come as far as ``epoch`` is passed over."""
        if nearby and self._own in group.sites[1:]:
            try:
                found = await tip(Source(self._link, group.mirror(self._own), group.subject(guid), nearby=True), guid)
            except TimeoutError:
                # No such mirror: the class may have moved.
                self._classes.forget(group.name)
            else:
                if found.sequence and found.entry.epoch >= epoch:
                    return Place(group, found)
        return Place(group, await tip(Source(self._link, group.stream, group.subject(guid)), guid))

    async def _start(self, place: Place, guid: str, stop: Entry) -> None:
        if stop.record is None:
            raise EngineError(f"{guid}: has moved to {place.group.name}, but is not there; restore that stream")
        with contextlib.suppress(OvertakenError):
            # Overtaken: by another who started it.
            await self.follow(place, guid, Entry(stop.epoch, stop.record))

    async def _point(self, guid: str, epoch: int, target: StreamClass) -> None:
        """Let the record's partition name where it is now, so that nobody goes the whole way."""
        group = await self._classes.partition(guid, make=False)
        if group is None or group == target:
            return
        place = await self._last(group, guid, 0, nearby=False)
        if place.tip.entry.to is not None and place.tip.entry.epoch <= epoch:
            with contextlib.suppress(OvertakenError):
                await self.follow(place, guid, Entry(epoch, None, target.name))

    async def _remembered(self, guid: str) -> StreamClass | None:
        name = self._at.get(guid)
        return None if name is None else await self._classes.get(name)

    def remember(self, guid: str, name: str) -> None:
        self._at[guid] = name
        self._at.move_to_end(guid)
        if len(self._at) > _REMEMBERED:
            self._at.popitem(last=False)


def _unknown(guid: str, why: object) -> OutcomeUnknownError:
    return OutcomeUnknownError(f"{guid}: {why}; read the record to see whether it was written")
