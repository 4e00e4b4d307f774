# SPDX-License-Identifier: Apache-2.0
"""Places records while this controller is the leader: collects load reports, decides once per epoch, and moves records within limits.

A move never interrupts reads. The servers and mirrors of the new placement group exist before the record stops in the old group. A
mirror that does not have the record yet leaves the read to the group's first site.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

from nats.aio.msg import Msg

from frontage.config.records import RecordPlacement
from frontage.mapping.placement.policy import Policy
from frontage.mapping.placement.values import Parameters, PlacementError
from frontage_records.errors import NotFoundError, OutcomeUnknownError, RecordError
from frontage_records.jetstream.engine import JetStream
from frontage_records.placement import reports
from frontage_records.placement.limits import MoveLimits
from frontage_records.placement.planner import Move, Planner
from frontage_records.placement.progress import Progress
from frontage_records.placement.view import summary

log = logging.getLogger(__name__)

EXPLAIN = "records-placement"
"""The subject on which the leading controller explains the placement."""
_LOOKUPS = 32
"""Records whose present sites are looked up at the same time."""
_MOVES = 16
"""Maximum number of concurrent moves."""
_MOVE_TIMEOUT = 60.0
_MAX_KNOWN = 100_000


class Placer:
    """Places the records of one store. Its tasks run while `run` runs; ``is_leading`` returns whether it may decide."""

    def __init__(
        self,
        store: JetStream,
        sites: Iterable[int],
        settings: RecordPlacement,
        min_replicas: int,
        is_leading: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
    ):
        parameters = Parameters(min_replicas=min_replicas, max_replicas=settings.max_replicas, mu=settings.mu, alike=True, seed=0)
        policy = Policy(settings.requests, share=settings.share, controllers=1)
        interval = settings.epoch / reports.REPORTS_PER_EPOCH
        self.planner = Planner(sorted(sites), parameters, policy, settings.epoch, interval, settings.groups)
        self.settings = settings
        self.progress = Progress(self.planner.sites)
        self._store = store
        self._limits = MoveLimits(settings.moves_per_second, settings.bytes_per_second)
        self._is_leading = is_leading
        self._clock = clock
        self._sites: dict[str, tuple[int, ...]] = {}
        """The last known sites of records."""
        self._moving: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Collect reports and decide until cancelled. Raises EngineError if the store cannot be reached at the start."""
        connection = self._store.connection
        subscriptions = [
            await connection.listen(reports.SUBJECT, self._on_report),
            await connection.listen(EXPLAIN, self._on_question),
        ]
        try:
            while True:
                await asyncio.sleep(self.settings.epoch - self._clock() % self.settings.epoch)
                if self._is_leading():
                    await self._decide()
                else:
                    self._sites.clear()
        finally:
            await self._stop_moving()
            for subscription in subscriptions:
                with contextlib.suppress(Exception):
                    await subscription.unsubscribe()

    async def _decide(self) -> None:
        try:
            await self._look_up(list(self.planner.demand(self._clock()).counts))
            self.progress.epoch = self.planner.plan(self._clock(), self._sites)
        except (PlacementError, RecordError) as error:
            if str(error) != self.progress.error:
                log.warning("cannot place records: %s", error)
            self.progress.error = str(error)
            return
        self.progress.error = None
        await self._stop_moving()
        self.progress.waiting = {move.guid: move for move in self.progress.epoch.moves}
        if self.progress.waiting:
            self._moving = asyncio.create_task(self._move_all(list(self.progress.epoch.moves)))

    async def _look_up(self, guids: list[str]) -> None:
        """Look up the unknown sites of records. Records that do not exist are omitted."""
        slots = asyncio.Semaphore(_LOOKUPS)

        async def look(guid: str) -> None:
            async with slots:
                with contextlib.suppress(RecordError):
                    location = await self._store.locator.find(guid, nearby=True)
                    if location is not None and location.record is not None and location.record.document is not None:
                        self._sites[guid] = (await self._store.groups.current(location.group)).sites

        while len(self._sites) > _MAX_KNOWN:
            self._sites.pop(next(iter(self._sites)))
        await asyncio.gather(*(look(guid) for guid in guids if guid not in self._sites))

    async def _move_all(self, moves: list[Move]) -> None:
        """Make the moves in order of decreasing gain, until the next epoch decides again."""
        slots = asyncio.Semaphore(_MOVES)

        async def one(move: Move, size: int) -> None:
            try:
                await self._move(move, size)
            finally:
                slots.release()

        async with asyncio.TaskGroup() as tasks:
            for move in moves:
                await slots.acquire()
                size = await self._size(move)
                await asyncio.sleep(self._limits.delay(size, self._clock()))
                tasks.create_task(one(move, size))

    async def _size(self, move: Move) -> int:
        """Return the bytes that a move copies."""
        try:
            location = await self._store.locator.find(move.guid, nearby=True)
        except RecordError:
            return 0
        record = None if location is None else location.record
        return max(1, move.added) * len((record and record.document) or b"")

    async def _move(self, move: Move, size: int) -> None:
        result = "done"
        try:
            async with asyncio.timeout(_MOVE_TIMEOUT):
                await self._store.place(move.guid, move.after)
        except NotFoundError as error:
            result = error.code
        except RecordError as error:
            result = error.code
            log.info("%s: not moved to %s: %s", move.guid, move.after, error)
        except TimeoutError:
            result = OutcomeUnknownError.code
        if result == "done":
            self._sites[move.guid] = move.after
            self.progress.bytes_moved += size
        else:
            self._sites.pop(move.guid, None)
        self.progress.counts[result] += 1
        self.progress.results[move.guid] = result
        while len(self.progress.results) > _MAX_KNOWN:
            self.progress.results.pop(next(iter(self.progress.results)))
        self.progress.waiting.pop(move.guid, None)

    async def _stop_moving(self) -> None:
        task, self._moving = self._moving, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        for guid in self.progress.waiting:
            # Its outcome is unknown if it was in progress.
            self._sites.pop(guid, None)
        self.progress.waiting.clear()

    async def _on_report(self, message: Msg) -> None:
        try:
            self.planner.on_report(*reports.read(message.data), self._clock())
        except ValueError as error:
            log.warning("%s", error)

    async def _on_question(self, message: Msg) -> None:
        if not self._is_leading():
            return
        try:
            question: dict[str, Any] = json.loads(message.data)
            answer = summary(self.progress, question.get("guid"), int(question.get("limit", 20)))
        except (ValueError, AttributeError, TypeError) as error:
            answer = {"ok": False, "error": f"invalid question: {error!r}"}
        await message.respond(json.dumps(answer).encode())
