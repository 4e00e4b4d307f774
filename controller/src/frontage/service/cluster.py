# SPDX-License-Identifier: Apache-2.0
"""One of several controllers that share a store. It follows the configuration, and acts as the leader or forwards requests to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol

from nats.aio.msg import Msg
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from frontage.api import forward
from frontage.api.app import Shared, application
from frontage.api.forward import Message
from frontage.api.problems import UnavailableError
from frontage.changes.history import JournalError
from frontage.config import ConfigError
from frontage.config.edit import EditError
from frontage.config.store import NatsStore
from frontage.store.connection import Connection
from frontage.store.errors import OvertakenError, StoreError
from frontage.store.journal import SharedStore
from frontage.store.lease import Lease

log = logging.getLogger(__name__)

POLL_INTERVAL = 0.5
"""Seconds between readings of the journal. The leader also notifies the others when it has appended a line."""
RETRY_INTERVAL = 0.5
FORWARD_TIMEOUT = 90.0
"""Timeout of the leader's answer in seconds, longer than that of an installation."""
LEAD_TIMEOUT = 15.0
"""Seconds that a follower waits, in addition to two leases, until a new leader accepts requests."""
CATCH_UP_TIMEOUT = 2.0
"""Seconds that a follower waits until it has the forwarded change itself, so that its client can read the change."""
_APPENDED = "appended"
_ALLOCATIONS = "allocations"
_PROGRESS = "progress"
_HELD_KEYS = "held_keys"
_MEMBER = "member"
_NOT_LEADING = HTTPStatus.MISDIRECTED_REQUEST
"""The status with which a previous leader rejects a forwarded request."""
_ERRORS = (StoreError, OvertakenError, JournalError, EditError, ConfigError, OSError)


class Host(Protocol):
    """The service that takes part in the cluster."""

    async def reload(self) -> None:
        """Read the copy of the configuration again. Raises ConfigError."""
        ...

    async def adopt_allocations(self, allocations: Mapping[str, Any]) -> None:
        """Adopt the allocations of the leader."""
        ...

    def held_keys(self) -> dict[str, int]:
        """Return the newest cookie key that each server has acknowledged."""
        ...

    async def before_lead(self) -> None:
        """Prepare to continue the previous leader's work."""
        ...

    async def settle(self) -> None:
        """Wait until the switches know this controller as the leader."""
        ...

    async def after_lead(self) -> None:
        """Complete the previous leader's work."""
        ...

    async def follow_election(self) -> None:
        """Offer this controller's current election id to the switches."""
        ...


class Cluster:
    """This controller as a member of the cluster. `run` does the work."""

    def __init__(self, file: Path, settings: NatsStore, name: str, host: Host, first_term: int):
        self.name = name
        self.store = SharedStore(file, settings.bucket)
        self.error: str | None = None
        """The last error of the store; None if it works."""
        self._settings = settings
        self._host = host
        self._lease = Lease(name, settings.lease, self._on_lease, first_term=first_term)
        self.store.journal.may_write = lambda: self._lease.term is not None
        self.store.journal.on_append = self._on_append
        self._connection: Connection | None = None
        self._ready = False
        """True if this controller has read all that it needs as the leader."""
        self._is_open = False
        """True if the switches know this controller as the leader, too."""
        self._changed = asyncio.Event()
        self._appended = asyncio.Event()
        self._known_lines = 0
        """The number of lines in the store's last answer."""
        self._errors: Counter[str] = Counter()
        self._members: dict[str, dict[str, Any]] = {}
        self._serving: Callable[[], Awaitable[None]] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._adopted: str | None = None
        """The hash of the service's configuration."""
        self._app: Any = None

    # The election, for the switches.

    @property
    def term(self) -> int | None:
        """The election id while this controller may write; None otherwise."""
        return self._lease.term if self._ready else None

    def exceed(self, term: int) -> None:
        """Use a larger election id, because a switch has already seen this one."""
        self._lease.exceed(term)

    @property
    def is_leading(self) -> bool:
        """True if this controller is the leader and accepts requests."""
        return self._is_open and self.term is not None

    def serve(self, shared: Shared) -> None:
        """Answer the requests that other controllers forward."""
        self._app = application(shared, forward.by_message, forwards=False)

    async def run(self) -> None:
        """Take part in the cluster until cancelled."""
        connection = self._connection = await self._connect()
        self.store.journal.open(connection)
        try:
            await connection.listen(_APPENDED, self._on_message)
            await connection.listen(_MEMBER, self._on_member)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._lease.run(connection))
                tasks.create_task(self._follow())
                tasks.create_task(self._lead())
                tasks.create_task(self._report())
        finally:
            self._ready = False
            with contextlib.suppress(StoreError):
                await self._lease.release(connection)
            await connection.close()

    async def _connect(self) -> Connection:
        while True:
            try:
                return await Connection.open(self._settings)
            except StoreError as error:
                self._failed(error)
                await asyncio.sleep(RETRY_INTERVAL)

    def _failed(self, error: Exception) -> None:
        if str(error) != self.error:
            log.warning("%s", error)
        self.error = str(error)
        self._errors[type(error).__name__] += 1

    def _on_lease(self) -> None:
        self._changed.set()

    async def _on_message(self, _: Msg) -> None:
        self._appended.set()

    async def _on_append(self) -> None:
        assert self._connection is not None
        self._known_lines = self.store.journal.history().lines
        with contextlib.suppress(StoreError):
            await self._connection.publish(_APPENDED)

    # Following

    async def _follow(self) -> None:
        """Read new lines, and adopt the configuration that they determine."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_INTERVAL):
                    await self._appended.wait()
            self._appended.clear()
            try:
                is_new = await self.store.journal.follow()
                self._known_lines = self.store.journal.history().lines
                if is_new or not self.is_leading:
                    await self._adopt()
                self.error = None
            except _ERRORS as error:
                self._failed(error)

    async def restore(self) -> None:
        """Restore the copy of the configuration after it was edited."""
        try:
            await self._adopt()
        except _ERRORS as error:
            self._failed(error)

    async def _adopt(self) -> None:
        """Adopt the configuration of the store. Raises `_ERRORS`."""
        made = self.store.journal.history().made()
        if await self.store.adopt():
            await self._host.reload()
        self._adopted = None if made is None else made.after

    # Leading

    async def _lead(self) -> None:
        """Become or cease to be the leader, according to the lease."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._lease.term is None:
                await self._stop_leading()
                continue
            if not self._ready:
                try:
                    await self._take_over()
                except _ERRORS as error:
                    self._failed(error)
                    await self._give_up()
                    continue
                self._ready = True
                await self._host.follow_election()
                self._spawn(self._begin_to_lead())
                continue
            await self._host.follow_election()
            await self._serve_requests()

    async def _begin_to_lead(self) -> None:
        """Accept requests once the switches know this controller, and complete the previous leader's work."""
        await self._host.settle()
        if self._ready:
            self._is_open = True
            await self._serve_requests()
            await self._host.after_lead()

    async def _give_up(self) -> None:
        """Release the lease, because another controller may work."""
        with contextlib.suppress(StoreError):
            await self._lease.release(self._open(), pause=self._settings.lease)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take_over(self) -> None:
        """Stop the previous leader's writes, and read what it has written. Raises StoreError and OvertakenError."""
        term = self._lease.term
        if term is None:
            raise StoreError("the lease has expired")
        await self.store.journal.lead(self.name, term)
        await self._adopt()
        await self._host.before_lead()

    async def _stop_leading(self) -> None:
        self._ready = self._is_open = False
        if self._serving is not None:
            serving, self._serving = self._serving, None
            with contextlib.suppress(StoreError):
                await serving()
        await self._host.follow_election()

    async def allocations(self) -> dict[str, Any]:
        """Return the allocations of the last leader. Raises StoreError."""
        found = await self._open().get(_ALLOCATIONS)
        return {} if found is None else dict(json.loads(found[0]))

    async def keep_allocations(self, allocations: dict[str, Any]) -> None:
        """Store the allocations for the next leader. Raises StoreError."""
        if self.term is not None:
            await self._open().put(_ALLOCATIONS, json.dumps(allocations).encode())

    async def progress(self) -> int:
        """Return the number of the last change whose rollout has reached its last round, or 0. Raises StoreError."""
        found = await self._open().get(_PROGRESS)
        return 0 if found is None else int(json.loads(found[0])["number"])

    async def keep_progress(self) -> None:
        """Store that the rollout of the last change enters its last round. Raises StoreError."""
        last = self.store.journal.history().last()
        if self.term is not None and last is not None:
            await self._open().put(_PROGRESS, json.dumps({"number": last.number}).encode())

    async def held_keys(self) -> dict[str, int]:
        """Return the key acknowledgements that the last leader has received. Raises StoreError."""
        found = await self._open().get(_HELD_KEYS)
        return {} if found is None else dict(json.loads(found[0]))

    def _open(self) -> Connection:
        if self._connection is None:
            raise StoreError("not connected to the store yet")
        return self._connection

    # Forwarding

    async def forward(self, request: Message) -> Message | None:
        """Return the leader's answer, or None if this controller is the leader now. Raises UnavailableError.

        If the leader changes in the meantime, the next one gets the request, too. The idempotency key prevents a second change.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + FORWARD_TIMEOUT
        patience = 2 * self._settings.lease + LEAD_TIMEOUT
        without_leader = loop.time() + patience
        while not self.is_leading:
            if loop.time() > deadline:
                raise UnavailableError(f"the leader has not answered within {FORWARD_TIMEOUT:g} s: see `frontage history`")
            connection = self._connection
            if connection is None or not connection.is_connected:
                why = self.error or "the store is unreachable"
                raise UnavailableError(f"nothing was changed, and the switches keep their state: {why}")
            try:
                found = await self._ask(connection, request, deadline - loop.time())
            except StoreError as error:
                raise UnavailableError(str(error)) from None
            if found is not None and found.head["status"] != _NOT_LEADING:
                await self._catch_up(int(found.head["lines"]))
                return found
            if loop.time() > without_leader:
                raise UnavailableError(f"no leader for {patience:g} s: nothing was changed: see `frontage status`")
            await asyncio.sleep(0.1)
        return None

    async def _ask(self, connection: Connection, request: Message, seconds: float) -> Message | None:
        """Return the answer of the current leader; None without a leader, or if it changes during the request. Raises StoreError."""
        term = self._lease.leader_term
        asking = asyncio.create_task(connection.request(f"request.{term}", request.encode(), seconds))
        try:
            while not asking.done() and self._lease.leader_term == term:
                await asyncio.wait({asking}, timeout=0.1)
            data = asking.result() if asking.done() else None
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        return None if data is None else Message.decode(data)

    async def _catch_up(self, lines: int) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_TIMEOUT):
                while self.store.journal.history().lines < lines:
                    self._appended.set()
                    await asyncio.sleep(0.02)
                # `_follow` adopts the configuration after it has read the lines.
                while (made := self.store.journal.history().made()) is not None and self._adopted != made.after:
                    await asyncio.sleep(0.02)

    async def _serve_requests(self) -> None:
        """Answer forwarded requests, also under a new term."""
        serving, self._serving = self._serving, None
        if not self._is_open:
            return
        try:
            if serving is not None:
                await serving()
            self._serving = await self._open().listen(f"request.{self._lease.term or 0}", self._on_request)
        except StoreError as error:
            self._failed(error)
            await asyncio.sleep(RETRY_INTERVAL)
            self._changed.set()

    async def _on_request(self, message: Msg) -> None:
        self._spawn(self._answer(message))

    async def _answer(self, message: Msg) -> None:
        found = Message({"status": _NOT_LEADING, "headers": {}}, b"")
        if self.is_leading:
            answered = await forward.answer(self._app, Message.decode(message.data))
            # The next leader may be able to answer.
            found = answered if self.is_leading or answered.head["status"] < HTTPStatus.INTERNAL_SERVER_ERROR else found
        lines = self.store.journal.history().lines
        with contextlib.suppress(Exception):  # the connection is lost: the sender retries
            await message.respond(Message({**found.head, "lines": lines}, found.body).encode())

    # Members

    async def _report(self) -> None:
        """Announce this controller to the others, follow the leader's allocations, and store key acknowledgements."""
        known: dict[str, Any] = {}
        stored: dict[str, int] | None = None
        while True:
            try:
                if self.term is None and (found := await self.allocations()) != known:
                    known = found
                    await self._host.adopt_allocations(found)
                held = self._host.held_keys()
                if not self.is_leading:
                    stored = None
                elif held != stored:
                    await self._open().put(_HELD_KEYS, json.dumps(held).encode())
                    stored = held
                await self._open().publish(_MEMBER, json.dumps({"name": self.name, **self._describe_self()}).encode())
            except StoreError as error:
                self._failed(error)
            await asyncio.sleep(self._settings.lease / 3)

    async def _on_member(self, message: Msg) -> None:
        found = json.loads(message.data)
        self._members[found["name"]] = found

    def _describe_self(self) -> dict[str, Any]:
        return {"lines": self.store.journal.history().lines, "time": time.time(), "term": self.term}

    @property
    def lag(self) -> int:
        """The number of journal lines that this controller knows of, but does not have yet."""
        return max(0, self._known_lines - self.store.journal.history().lines)

    def describe(self) -> dict[str, Any]:
        """Return the part of a status."""
        now, lines = time.time(), self.store.journal.history().lines
        members = {**self._members, self.name: self._describe_self()}
        newest = max(member["lines"] for member in members.values())
        return {
            "kind": "nats",
            "bucket": self._settings.bucket,
            "name": self.name,
            "leader": self._lease.leader,
            "term": self._lease.leader_term,
            "is_leading": self.is_leading,
            "lines": lines,
            "error": self.error,
            "members": [
                {"name": name, "behind": newest - member["lines"], "seen": max(0.0, round(now - member["time"], 1))}
                for name, member in sorted(members.items())
            ],
        }

    def metrics(self) -> Iterable[Metric]:
        """Return the Prometheus metrics."""
        leading = GaugeMetricFamily("frontage_store_leading", "1 if this controller is the leader", labels=["controller"])
        leading.add_metric([self.name], float(self.is_leading))
        failing = GaugeMetricFamily("frontage_store_failing", "1 if the store does not answer", labels=["controller"])
        failing.add_metric([self.name], float(self.error is not None))
        lag = GaugeMetricFamily(
            "frontage_store_lag_lines", "Lines of the journal that this controller lacks", labels=["controller"]
        )
        lag.add_metric([self.name], self.lag)
        term = GaugeMetricFamily("frontage_store_term", "Term of the last known leader", labels=["controller"])
        term.add_metric([self.name], self._lease.leader_term)
        errors = CounterMetricFamily("frontage_store_errors", "Failed operations of the store", labels=["controller", "kind"])
        for kind, count in sorted(self._errors.items()):
            errors.add_metric([self.name, kind], count)
        yield from (leading, failing, lag, term, errors)
