# SPDX-License-Identifier: Apache-2.0
"""Eventual records at a site that does not order their writes (Auspice, section 1.2.3).

The site stores a write in its `Journal`, acknowledges it, and forwards it to the record's log in the background. Clients thus write
in one local round trip, even while the site is cut off from all others. Reads at the site merge the nearest state of the log
with the journal's message. A message stays in the journal until this site reads a state of the log that contains it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from frontage_records.clock import HybridClock
from frontage_records.errors import ContentionError, EngineError, OutcomeUnknownError, RecordError, SizeError
from frontage_records.jetstream.connection import LOCAL_READ_TIMEOUT, OvertakenError
from frontage_records.jetstream.guid_locks import GuidLocks
from frontage_records.jetstream.journal import UNSTORED, Accepted, Journal, Pending
from frontage_records.jetstream.locator import ATTEMPTS, RecordLocator
from frontage_records.jetstream.write_cache import Location, WriteCache
from frontage_records.merges import Delta, check_changes, decode, empty, extend
from frontage_records.record import DEFAULT_BOUNDS, Bounds, Record, Write, Written, apply
from frontage_records.tasks import finish

log = logging.getLogger(__name__)

FORWARDS = 64
"""Maximum number of journal messages that are forwarded concurrently."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
"""Seconds before a failed message is forwarded again: initial and maximum value."""
SCAN_INTERVAL = 10.0
"""Seconds between searches of the journal for messages that no running server forwards."""
_POLL_INTERVAL, _POLLS = 0.05, 100
"""Interval in seconds and number of reads of the nearest state until it contains a forwarded message."""
_SILENCE, _SILENT_TIMEOUT = 5.0, 0.1
"""Seconds for which servers that have missed `LOCAL_READ_TIMEOUT` have a shorter timeout, and this timeout."""
_MAX_ORDERED = 100_000
_CLOSE_TIMEOUT = 2.0
"""Seconds that a closing server waits for messages in progress. A successor forwards the others."""


class LocalWrites:
    """Accepts, reads and forwards the writes of one site. Call `start` before use."""

    def __init__(
        self,
        locator: RecordLocator,
        journal: Journal,
        clock: HybridClock,
        write_to_log: Callable[[Write], Awaitable[Written]],
        offer: Callable[[Record], None],
        bounds: Bounds = DEFAULT_BOUNDS,
    ):
        """``write_to_log`` adds a write to the record's log. ``offer`` passes a state to this server's subscribers."""
        self._locator = locator
        self._journal = journal
        self._clock = clock
        self._write_to_log, self._offer = write_to_log, offer
        self._bounds = bounds
        self._bases = WriteCache()
        """The last state of the log that this server has read, for use while the log is unreachable."""
        self._silent: dict[str, float] = {}
        """Placement groups whose servers have not answered, with the time until which reads use the shorter timeout."""
        self._ordered: dict[str, None] = {}
        """Records that are known to have ordered writes (this never changes), the oldest first."""
        self._pending: dict[str, Pending] = {}
        """The journal's messages that this server has written or found, and not yet forwarded."""
        self._locks = GuidLocks()
        self._forwards: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(FORWARDS)
        self._scanner: asyncio.Task[None] | None = None

    @property
    def unforwarded(self) -> int:
        """Number of records with writes that this server has yet to forward."""
        return len(self._forwards)

    async def start(self) -> None:
        """Open the journal, and forward messages that earlier servers have left. If the journal cannot be created yet, retry later."""
        found: set[str] | None = None
        try:
            await self._journal.open()
            found = await self._forward_found(None)
        except RecordError as error:
            log.warning("eventual records are written at the site that orders their writes: %s", error)
        self._scanner = asyncio.create_task(self._scan(found))

    async def close(self) -> None:
        """Stop, after waiting a limited time for messages in progress."""
        if self._scanner is not None:
            self._scanner.cancel()
        await finish(self._forwards.values(), _CLOSE_TIMEOUT)

    async def read(self, guid: str) -> Record | None:
        """Return this site's state of the record, if its reads are not ordered. Raises EngineError, ContentionError."""
        base = await self._base(guid)
        record = None if base is None else base.record
        if record is None or record.consistency.is_ordered or not self._journal.is_open:
            return record
        pending = await self._latest(guid)
        if pending is not None:
            record = pending.accepted.over(record)
        self._clock.observe(record.stamp)
        return record

    async def write(self, write: Write) -> Written | None:
        """Accept a write at this site. Returns None, without effect, for a write that must go to the record's log.

        Raises the errors of `apply`, ContentionError, OutcomeUnknownError and EngineError.
        """
        if write.is_forwarded or not self._journal.is_open:
            return None
        if write.guid in self._ordered:
            return None
        base = self._bases.get(write.guid)
        if base is None and ((group := await self._locator.known(write.guid)) is None or group.sites[0] == self._journal.site):
            return None
        if base is None or self._journal.site in base.group.sites:
            base = await self._base(write.guid)
        record = None if base is None else base.record
        if base is None or record is None or record.consistency.is_ordered or base.group.sites[0] == self._journal.site:
            return None
        if record.consistency.merge is not None and (write.deletes or record.document is None):
            return None
        async with self._locks.hold(write.guid):
            for _ in range(ATTEMPTS):
                try:
                    return await self._accept(record, write)
                except OvertakenError:
                    await self._refresh(write.guid)
        raise ContentionError(f"{write.guid}: too many concurrent writes at this site: try again")

    async def _accept(self, base: Record, write: Write) -> Written:
        pending = self._pending.get(write.guid)
        current = base if pending is None else pending.accepted.over(base)
        self._clock.observe(current.stamp)
        now, tick = self._clock.physical(), self._clock.tick()
        if base.consistency.merge is None:
            stamp = tick if write.stamp is None else write.stamp
            written = apply(current, replace(write, stamp=stamp, is_forwarded=write.stamp is None), now, self._bounds)
            if written.record is current:
                return written
            accepted = Accepted(write.guid, base.consistency, written.record)
        else:
            accepted = Accepted(write.guid, base.consistency, delta=self._extended(current, pending, write, tick))
        try:
            stored = await self._journal.append(accepted, pending)
        except OutcomeUnknownError:
            if base.consistency.merge is not None:
                await self._refresh_later(write.guid)
                raise
            # Storing it twice is harmless.
            raise OvertakenError from None
        self._pending[write.guid] = stored
        self._forward(write.guid)
        record = stored.accepted.over(base)
        self._offer(record)
        return Written(record, applied=True)

    def _extended(self, current: Record, pending: Pending | None, write: Write, stamp: int) -> Delta:
        """Return the delta with one more update. Raises the errors of `apply`."""
        # The common checks: consistency, condition, kind and size of the update. Only the log uses the result.
        tried = apply(current, write, stamp, self._bounds)
        merge = tried.record.consistency.merge
        assert merge is not None
        if not isinstance(write.update, dict):
            raise EngineError(f"{write.guid}: the update of another site reached a site that does not order the record: try again")
        delta = Delta(self._journal.site, UNSTORED) if pending is None else pending.accepted.delta
        assert delta is not None
        state = empty() if current.document is None else decode(current.document)
        extended = extend(merge, state, delta, check_changes(merge, write.update), stamp)
        encoded = len(Accepted(write.guid, current.consistency, delta=extended).encode())
        if encoded > 2 * self._bounds.max_bytes:
            raise SizeError(
                f"{write.guid}: its pending updates are too large: wait until they have been forwarded to the record's log"
            )
        return extended

    async def _base(self, guid: str) -> Location | None:
        """Return the nearest state of the log, or the last known state if the log is unreachable. Raises EngineError, ContentionError."""
        known = self._bases.get(guid)
        now = asyncio.get_running_loop().time()
        limit = LOCAL_READ_TIMEOUT
        if known is not None and now < self._silent.get(known.group.name, 0.0):
            limit = _SILENT_TIMEOUT
        try:
            async with asyncio.timeout(None if known is None else limit):
                location = await self._locator.find(guid, nearby=True)
        except (TimeoutError, EngineError):
            if known is None:
                raise
            self._silent[known.group.name] = now + _SILENCE
            return known
        if location is None or location.record is None:
            return location
        if location.record.consistency.is_ordered:
            self._ordered[guid] = None
            if len(self._ordered) > _MAX_ORDERED:
                self._ordered.pop(next(iter(self._ordered)))
        else:
            if known is not None and known.record is not None and known.record.order > location.record.order:
                # The answering server lags behind an earlier one.
                location = Location(location.group, known.tail)
            self._bases.put(guid, location)
        return location

    async def _latest(self, guid: str) -> Pending | None:
        """Return the later of this server's and another local server's version of the journal's message."""
        own, found = self._pending.get(guid), None
        # This server knows its own messages without the journal.
        with contextlib.suppress(EngineError):
            found = await self._journal.read(guid, nearby=True)
        return max((one for one in (own, found) if one is not None), key=lambda one: one.sequence, default=None)

    async def _refresh(self, guid: str) -> None:
        found = await self._journal.read(guid)
        if found is None:
            self._pending.pop(guid, None)
        else:
            self._pending[guid] = found
            self._forward(guid)

    async def _refresh_later(self, guid: str) -> None:
        """Record the journal's message after a write with unknown outcome."""
        with contextlib.suppress(RecordError):
            await self._refresh(guid)

    def _forward(self, guid: str) -> None:
        if guid not in self._forwards:
            self._forwards[guid] = asyncio.create_task(self._forward_until_done(guid))

    async def _forward_until_done(self, guid: str) -> None:
        pause, reported = _FIRST_PAUSE, False
        while True:
            try:
                async with self._slots:
                    if await self._forward_once(guid):
                        # Immediately, so that any later write starts another task.
                        self._forwards.pop(guid, None)
                        return
            except RecordError as error:
                if not reported:
                    log.warning("%s: not forwarded yet: %s", guid, error)
                    reported = True
            except Exception:
                log.exception("%s", guid)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _forward_once(self, guid: str) -> bool:
        """Forward the record's message. Return whether nothing is left to forward."""
        pending = self._pending.get(guid) or await self._journal.read(guid)
        if pending is None:
            return guid not in self._pending
        await self._write_to_log(pending.accepted.write)
        if not await self._is_visible(pending.accepted):
            return False
        async with self._locks.hold(guid):
            await self._journal.remove(pending)
            if self._pending.get(guid, pending).sequence == pending.sequence:
                self._pending.pop(guid, None)
                return True
        return False

    async def _is_visible(self, accepted: Accepted) -> bool:
        """Wait until the state that this site reads contains these writes. Return False on timeout."""
        for _ in range(_POLLS):
            location = await self._locator.find(accepted.guid, nearby=True)
            if location is not None and location.record is not None and accepted.is_in(location.record):
                self._bases.put(accepted.guid, location)
                return True
            await asyncio.sleep(_POLL_INTERVAL)
        return False

    async def _scan(self, found: set[str] | None) -> None:
        """Forward messages of stopped servers. ``found``: the records with messages at the last search; None before the first search."""
        while True:
            await asyncio.sleep(SCAN_INTERVAL)
            try:
                if not self._journal.is_open:
                    await self._journal.open()
                found = await self._forward_found(found)
            except RecordError as error:
                log.debug("%s", error)
            except Exception:
                log.exception("%s", self._journal.stream)

    async def _forward_found(self, before: set[str] | None) -> set[str]:
        """Forward the journal's messages: all at the start, later only those from the last search. Return the records with messages."""
        found = set(await self._journal.guids())
        for guid in sorted(found if before is None else found & before):
            self._forward(guid)
        return found
