# SPDX-License-Identifier: Apache-2.0
"""The connection to JetStream: the few operations that the store needs, with errors that tell whether an operation was done."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError

from frontage.jetstream import MIN_SERVER_VERSION, RETRY_DELAY, UnansweredError, answered, connect, is_too_old
from frontage_records.errors import EngineError, SizeError

CONNECT_TIMEOUT = 5.0
"""Seconds for the first connection. Reconnection is tried for ever."""
PING_INTERVAL = 4
"""Seconds between pings. After two unanswered pings the client changes to another server."""
ATTEMPT_TIMEOUT = 2.0
"""Seconds to wait for one answer before the request is repeated."""
OPERATION_TIMEOUT = 15.0
"""Seconds for a whole operation. A Raft group that has lost its leader elects a new one after 4 to 9 (nats-server's election
timeout), unless candidates split the votes."""
REPEATS_WINDOW = 2 * OPERATION_TIMEOUT
"""Seconds for which servers remember the ids of stored messages. A message is repeated for at most `OPERATION_TIMEOUT`."""
LOCAL_READ_TIMEOUT = 0.5
"""Seconds to wait for a mirror at this site before the origin is read, and for the origin before the last known state is used. It is
less than a client's shortest timeout, so that the client gets this answer."""
_WRONG_SEQUENCE, _IN_FLIGHT = 10071, 10164
"""JetStream's error codes for a message whose expected predecessor is not the last one: another message is stored (the error has its
sequence number), or is in flight."""
_NO_MESSAGE = (10037, 10043, 10057)
"""JetStream's error codes for the deletion of a message that does not exist."""
_LAST = re.compile(r"wrong last sequence: (\d+)")

T = TypeVar("T")
Message: TypeAlias = tuple[int, bytes]
"""The sequence number of a message in its stream, and its data."""


class OvertakenError(Exception):
    """Another message came first, so this one is not valid."""


class InFlightError(Exception):
    """Another message is in flight at the leader that answered. If that one is no longer leader, the new one may have stored this
    message."""


class NoAnswerError(Exception):
    """There was no answer: the message may have been stored, or may still be."""


class RefusedError(NoAnswerError):
    """A leader rejected the message without knowing a later one: the leader is outdated, or the preceding message was deleted."""


class Connection:
    """A connection to JetStream. Create it with `connect`."""

    def __init__(self, client: Client, where: str):
        self.where = where
        self.context: JetStreamContext = client.jetstream(timeout=ATTEMPT_TIMEOUT)
        self._nearby: JetStreamContext = client.jetstream(timeout=LOCAL_READ_TIMEOUT)
        self._client = client

    @classmethod
    async def connect(cls, servers: list[str]) -> Connection:
        """Connect to one of the servers. Raises EngineError if none is reachable in time, or if it has no JetStream."""
        where = ",".join(servers)
        try:
            client = await connect(servers, CONNECT_TIMEOUT, PING_INTERVAL)
        except UnansweredError as error:
            raise EngineError(f"{where}: cannot be reached: {error}: start nats-server with JetStream") from None
        connection = cls(client, where)
        if is_too_old(client):
            version = client.connected_server_version
            await client.close()
            found, need = f"{version.major}.{version.minor}.{version.patch}", ".".join(map(str, MIN_SERVER_VERSION))
            raise EngineError(f"{where}: nats-server {found} loses acknowledged writes: use {need} or later")
        try:
            await connection.retry(connection.context.account_info)
        except BaseException as error:
            await client.close()
            if isinstance(error, EngineError):
                raise EngineError(f"{where}: JetStream does not answer: {error}: configure `jetstream` there") from None
            raise
        return connection

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()

    async def retry(self, request: Callable[[], Awaitable[T]]) -> T:
        """Repeat an idempotent request until it is answered. Raises EngineError, NotFoundError, BadRequestError."""
        try:
            return await answered(request, OPERATION_TIMEOUT)
        except (nats.errors.MaxPayloadError, UnansweredError) as error:
            raise EngineError(f"{self.where}: {error}: a majority of its servers must run") from None

    async def info(self, stream: str) -> dict[str, Any]:
        """Return JetStream's information on a stream, with fields that the library omits. Raises EngineError, NotFoundError."""
        return await self._api(f"STREAM.INFO.{stream}")

    async def names(self) -> list[str]:
        """Return the names of all streams. Raises EngineError."""
        found: list[str] = []
        while page := (await self._api("STREAM.NAMES", {"offset": len(found)})).get("streams"):
            found += page
        return found

    async def subjects(self, stream: str) -> list[str]:
        """Return the subjects of a stream's messages. Raises EngineError, NotFoundError."""
        found: list[str] = []
        while page := (await self._api(f"STREAM.INFO.{stream}", {"subjects_filter": ">", "offset": len(found)}))["state"].get(
            "subjects"
        ):
            found += page
        return found

    async def remove(self, stream: str, sequence: int) -> None:
        """Delete a message if it exists. Raises EngineError without an answer."""
        body = json.dumps({"seq": sequence, "no_erase": True}).encode()
        try:
            message = await self._client.request(f"$JS.API.STREAM.MSG.DELETE.{stream}", body, timeout=ATTEMPT_TIMEOUT)
        except (nats.errors.Error, TimeoutError) as error:
            raise EngineError(f"{self.where}: {stream}: {error or type(error).__name__}: try again") from None
        problem = json.loads(message.data).get("error")
        if problem is not None and problem.get("err_code") not in _NO_MESSAGE:
            raise EngineError(f"{self.where}: {stream}: {problem.get('description')}: try again")

    async def _api(self, what: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        async def request() -> dict[str, Any]:
            data = b"" if body is None else json.dumps(body).encode()
            message = await self._client.request(f"$JS.API.{what}", data, timeout=ATTEMPT_TIMEOUT)
            found: dict[str, Any] = json.loads(message.data)
            if "error" in found:
                raise APIError.from_error(found["error"])
            return found

        return await self.retry(request)

    async def cancel_move(self, stream: str) -> None:
        """Cancel a move in progress, if the server supports that (2.15). Older servers accept a new placement during a move instead."""
        with contextlib.suppress(nats.errors.Error, TimeoutError):
            await self._client.request(f"$JS.API.STREAM.CANCEL_MOVE.{stream}", timeout=ATTEMPT_TIMEOUT)

    async def read(self, stream: str, subject: str, since: int | None, *, nearby: bool) -> Message | None:
        """Return the subject's first message from sequence number ``since`` on, or its last message without ``since``.

        The leader answers, because these streams have allow_direct off. With ``nearby`` a mirror answers, which may lag. Raises
        EngineError; with ``nearby`` TimeoutError if the mirror does not exist or does not answer. Returns None without a message.
        """
        streams = self._nearby if nearby else self.context

        async def request() -> api.RawStreamMsg:
            return await streams.get_msg(stream, seq=since, subject=subject, direct=nearby, next=since is not None)

        try:
            found = await (request() if nearby else self.retry(request))
        except NotFoundError:
            return None
        except (nats.errors.Error, TimeoutError) as error:
            raise TimeoutError(str(error)) from None
        return found.seq or 0, found.data or b""

    async def publish(self, subject: str, data: bytes, after: int, write: str) -> int:
        """Store a message, if ``after`` is the sequence number of the subject's last message, or 0 for the first message.

        A server that has stored the message with the id ``write`` recently (`REPEATS_WINDOW`) does not store it again, and answers as
        it would have then, even if later messages follow.

        Returns the sequence number of the message once a majority of the Raft group has it. Raises OvertakenError (another message
        is stored), InFlightError, EngineError or SizeError (not done), NoAnswerError.

        A former leader that was suspended receives the message too, as does the current leader, and the first answer wins. An
        answer comes from the current order only if it knows a later message than ``after``; one that knows less is outdated.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + OPERATION_TIMEOUT
        headers = {api.Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value: str(after), api.Header.MSG_ID.value: write}
        while True:
            try:
                return (await self.context.publish(subject, data, headers=dict(headers))).seq
            except NoStreamResponseError:
                # No server has received it: the group has no leader at the moment.
                if loop.time() > deadline:
                    raise EngineError(f"{self.where}: {subject}: no leader: a majority of its servers must run") from None
                await asyncio.sleep(RETRY_DELAY)
            except nats.errors.MaxPayloadError:
                raise SizeError(f"{self.where}: {subject}: larger than the servers' max_payload: raise max_payload") from None
            except (nats.errors.Error, TimeoutError) as error:
                code = error.err_code if isinstance(error, APIError) else None
                if code == _IN_FLIGHT:
                    raise InFlightError from None
                if code == _WRONG_SEQUENCE and (last := _LAST.search(str(error))) is not None and int(last[1]) > after:
                    raise OvertakenError from None
                kind = RefusedError if code == _WRONG_SEQUENCE else NoAnswerError
                raise kind(f"{self.where}: {error or type(error).__name__}") from None

    async def announce(self, subject: str, data: bytes) -> None:
        """Send a message without an acknowledgment. Raises EngineError."""
        try:
            await self._client.publish(subject, data)
        except (nats.errors.Error, OSError) as error:
            raise EngineError(f"{self.where}: {error or type(error).__name__}") from None

    async def request(self, subject: str, data: bytes, seconds: float) -> bytes | None:
        """Return the answer of a listener; None if there is no listener. On TimeoutError a listener may have received the request."""
        try:
            return bytes((await self._client.request(subject, data, timeout=seconds)).data)
        except nats.errors.NoRespondersError:
            return None
        except (nats.errors.Error, TimeoutError) as error:
            raise TimeoutError(str(error)) from None

    async def listen(self, subject: str, on_message: Callable[[Msg], Awaitable[None]], queue: str = "") -> Subscription:
        """Subscribe to a subject. Among listeners with the same ``queue``, one gets each message. Raises EngineError."""
        try:
            subscription = await self._client.subscribe(subject, queue=queue, cb=on_message)
            await self._client.flush(timeout=round(OPERATION_TIMEOUT))
        except (nats.errors.Error, TimeoutError) as error:
            raise EngineError(f"{self.where}: {error or type(error).__name__}") from None
        return subscription
