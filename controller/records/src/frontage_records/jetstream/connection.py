"""The connection to JetStream: the few operations that records need, with errors that say what has become of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

import nats
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, BadRequestError, NoStreamResponseError, NotFoundError

from frontage_records.errors import EngineError, SizeError

SAFE = 2, 11
"""The first version of nats-server whose groups of several servers refuse a message that another has overtaken (`chain`), and of
which `kill -9` was not seen to lose anything, as 2.9.10 was (docs/records.md)."""
CONNECT_TIMEOUT = 5.0
"""Seconds for the first connection; later ones are tried for ever."""
PING = 4
"""Seconds from ping to ping: a server that stands still is left for another after two without an answer."""
ATTEMPT = 2.0
"""Seconds for one answer; then it is asked again."""
PATIENCE = 15.0
"""Seconds for a whole operation: a group that has lost its leader has a new one after 4 to 9 (nats-server's election timeout),
unless two candidates share the votes."""
LOCAL_ATTEMPT = 1.0
"""Seconds for a mirror at this site; then its origin is asked."""
_PAUSE = 0.05
_BEHIND, _CROWDED = 10071, 10164
"""JetStream's error codes of a message that was expected to be behind another than it would be: one that is there, whose sequence
number it says, or one that is on its way."""
_LAST = re.compile(r"wrong last sequence: (\d+)")

T = TypeVar("T")
Message: TypeAlias = tuple[int, bytes]
"""Its sequence number in its stream, and what it holds."""


class OvertakenError(Exception):
    """Another message came first: this one does not count."""


class CrowdedError(Exception):
    """Another message is on its way, to a leader that may be none any longer and not know that yet: the one that is may have stored
    this one."""


class NoAnswerError(Exception):
    """It may be stored, or be stored yet."""


class Link:
    """Make it with `connect`."""

    def __init__(self, client: Client, where: str):
        self.where = where
        self.streams: JetStreamContext = client.jetstream(timeout=ATTEMPT)
        self._nearby: JetStreamContext = client.jetstream(timeout=LOCAL_ATTEMPT)
        self._client = client

    @classmethod
    async def connect(cls, servers: list[str]) -> Link:
        """Raises EngineError if none can be reached in time, or has no JetStream."""
        where, problems = ",".join(servers), ["no answer"]

        async def note(error: Exception) -> None:
            problems[0] = str(error) or type(error).__name__

        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                client = await nats.connect(
                    servers,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=0.2,
                    error_cb=note,
                    ping_interval=PING,
                    max_outstanding_pings=2,
                )
        except (OSError, TimeoutError, nats.errors.Error):
            raise EngineError(f"{where}: cannot be reached: {problems[0]}; start nats-server with JetStream") from None
        link = cls(client, where)
        version = client.connected_server_version
        if (version.major, version.minor) < SAFE:
            await client.close()
            found, need = f"{version.major}.{version.minor}.{version.patch}", ".".join(map(str, SAFE))
            raise EngineError(f"{where}: nats-server {found} loses writes that it acknowledged; use {need} or later")
        try:
            await link.ask(link.streams.account_info)
        except BaseException as error:
            await client.close()
            if isinstance(error, EngineError):
                raise EngineError(f"{where}: has no JetStream that answers: {error}; configure `jetstream` there") from None
            raise
        return link

    async def close(self) -> None:
        await self._client.close()

    async def ask(self, question: Callable[[], Awaitable[T]]) -> T:
        """What may be asked again until it is answered. Raises EngineError, NotFoundError, BadRequestError."""
        problem: Exception = TimeoutError()
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    try:
                        return await question()
                    except (NotFoundError, BadRequestError):
                        raise
                    except (nats.errors.Error, TimeoutError) as error:
                        problem = error
                        await asyncio.sleep(_PAUSE)
        except TimeoutError:
            raise EngineError(f"{self.where}: {problem or type(problem).__name__}; a group needs most of its servers") from None

    async def info(self, stream: str) -> dict[str, Any]:
        """What JetStream says of a stream, with what the library leaves out. Raises EngineError, NotFoundError."""
        return await self._api(f"STREAM.INFO.{stream}")

    async def names(self) -> list[str]:
        """Of all streams. Raises EngineError."""
        found: list[str] = []
        while page := (await self._api("STREAM.NAMES", {"offset": len(found)})).get("streams"):
            found += page
        return found

    async def _api(self, what: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        async def question() -> dict[str, Any]:
            data = b"" if body is None else json.dumps(body).encode()
            message = await self._client.request(f"$JS.API.{what}", data, timeout=ATTEMPT)
            found: dict[str, Any] = json.loads(message.data)
            if "error" in found:
                raise APIError.from_error(found["error"])
            return found

        return await self.ask(question)

    async def cancel_move(self, stream: str) -> None:
        """Where one is under way, and the server knows how (2.15); an older one takes a new placement in the middle instead."""
        with contextlib.suppress(nats.errors.Error, TimeoutError):
            await self._client.request(f"$JS.API.STREAM.CANCEL_MOVE.{stream}", timeout=ATTEMPT)

    async def read(self, stream: str, subject: str, since: int | None, *, nearby: bool) -> Message | None:
        """The subject's first message of at least that sequence number; the last of all if None. None if there is none.

        By the leader's word, since allow_direct is off for such streams; or with ``nearby`` a mirror's, as far as it has come.
        Raises EngineError, or with ``nearby`` TimeoutError: there is no such mirror, or it does not answer.
        """
        streams = self._nearby if nearby else self.streams

        async def question() -> api.RawStreamMsg:
            return await streams.get_msg(stream, seq=since, subject=subject, direct=nearby, next=since is not None)

        try:
            found = await (question() if nearby else self.ask(question))
        except NotFoundError:
            return None
        except (nats.errors.Error, TimeoutError) as error:
            raise TimeoutError(str(error)) from None
        return found.seq or 0, found.data or b""

    async def publish(self, subject: str, data: bytes, behind: int) -> int:
        """Store it, if ``behind`` is the sequence number of the subject's last message, or 0 and there is none. Returns its own,
        once most of the group have it.

        Raises OvertakenError (another is there), CrowdedError, EngineError or SizeError (not done), NoAnswerError.

        A leader that has stood still hears what is published, as does the one after it, and the first answer is what comes here.
        Only one that knows of later messages than ``behind`` is known to be no such; one that knows of less than that is one.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE
        headers = {api.Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value: str(behind)}
        while True:
            try:
                return (await self.streams.publish(subject, data, headers=dict(headers))).seq
            except NoStreamResponseError:
                # Nobody has heard it: the group has no leader at this moment.
                if loop.time() > deadline:
                    raise EngineError(f"{self.where}: {subject}: no leader; a group needs most of its servers") from None
                await asyncio.sleep(_PAUSE)
            except nats.errors.MaxPayloadError:
                raise SizeError(f"{self.where}: {subject}: larger than the servers' max_payload; raise that") from None
            except (nats.errors.Error, TimeoutError) as error:
                code = error.err_code if isinstance(error, APIError) else None
                if code == _CROWDED:
                    raise CrowdedError from None
                if code == _BEHIND and (last := _LAST.search(str(error))) is not None and int(last[1]) > behind:
                    raise OvertakenError from None
                raise NoAnswerError(f"{self.where}: {error or type(error).__name__}") from None

    async def request(self, subject: str, data: bytes, patience: float) -> bytes | None:
        """The answer of one who listens; None if nobody does. Raises TimeoutError: it may have been heard."""
        try:
            return bytes((await self._client.request(subject, data, timeout=patience)).data)
        except nats.errors.NoRespondersError:
            return None
        except (nats.errors.Error, TimeoutError) as error:
            raise TimeoutError(str(error)) from None

    async def listen(self, subject: str, hear: Callable[[Msg], Awaitable[None]], queue: str = "") -> Subscription:
        """``queue``: of those who listen by the same name, one gets each message. Raises EngineError."""
        try:
            subscription = await self._client.subscribe(subject, queue=queue, cb=hear)
            await self._client.flush(timeout=round(PATIENCE))
        except (nats.errors.Error, TimeoutError) as error:
            raise EngineError(f"{self.where}: {error or type(error).__name__}") from None
        return subscription
