# SPDX-License-Identifier: Apache-2.0
"""The connection to NATS JetStream, with the operations that the shared store needs.

A bucket has three streams:

    BUCKET-journal  the lines of the journal, one per message; nothing is removed
    BUCKET-texts    the configurations by hash, compressed; the last `KEPT_TEXTS`
    KV_BUCKET       a key-value bucket: the lease, the members, the progress of rollouts, allocations and secret files
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, BadRequestError, KeyNotFoundError, KeyWrongLastSequenceError, NotFoundError
from nats.js.kv import KeyValue

from frontage.certificates import CertificateError, load
from frontage.changes.journal import KEPT_TEXTS
from frontage.config.store import NatsStore
from frontage.jetstream import MIN_SERVER_VERSION, UnansweredError, answered, connect, is_too_old
from frontage.store.errors import OvertakenError, StoreError

CONNECT_TIMEOUT = 5.0
"""Timeout of the first connection in seconds. Reconnecting never times out."""
ATTEMPT_TIMEOUT = 2.0
"""Seconds to wait for an answer before the request is repeated."""
OPERATION_TIMEOUT = 12.0
"""Timeout of a whole operation in seconds. The servers elect a new leader of a stream within 4 to 9 s."""
_WRONG_SEQUENCE = (10071, 10164)
"""JetStream's error codes for a message without the expected sequence number: another message is stored or in flight."""
_PING_INTERVAL = 2

T = TypeVar("T")


class Connection:
    """A connection to the servers of a bucket. Create it with `open`."""

    def __init__(self, settings: NatsStore, client: Client):
        self.bucket = settings.bucket
        self._where = f"store {','.join(settings.servers)}"
        self._client = client
        self._streams: JetStreamContext = client.jetstream(timeout=ATTEMPT_TIMEOUT)
        self._keys: KeyValue | None = None

    @classmethod
    async def open(cls, settings: NatsStore) -> Connection:
        """Connect, and create the streams that do not exist yet. Raises StoreError."""
        where = f"store {','.join(settings.servers)}"
        options = {"tls": _context(settings), **_credentials(settings)}
        try:
            client = await connect(settings.servers, CONNECT_TIMEOUT, _PING_INTERVAL, **options)
        except UnansweredError as error:
            raise StoreError(f"{where}: cannot be reached: {error}: start the NATS servers, or correct store.nats") from None
        connection = cls(settings, client)
        try:
            if is_too_old(client):
                need = ".".join(map(str, MIN_SERVER_VERSION))
                raise StoreError(f"{where}: this version of nats-server may lose writes: use {need} or later")
            await connection._create_streams(settings.replicas)
        except BaseException:
            await client.close()
            raise
        return connection

    @property
    def is_connected(self) -> bool:
        """Whether a server is connected, as far as the client knows."""
        return self._client.is_connected

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()

    async def _create_streams(self, replicas: int) -> None:
        journal = api.StreamConfig(
            name=f"{self.bucket}-journal",
            subjects=[f"{self.bucket}.journal"],
            num_replicas=replicas,
            deny_delete=True,
            deny_purge=True,
            allow_direct=False,
        )
        texts = api.StreamConfig(
            name=f"{self.bucket}-texts",
            subjects=[f"{self.bucket}.text.*"],
            num_replicas=replicas,
            max_msgs=KEPT_TEXTS,
            max_msgs_per_subject=1,
            discard=api.DiscardPolicy.OLD,
            allow_direct=False,
        )
        keys = api.KeyValueConfig(bucket=self.bucket, replicas=replicas, direct=False)
        try:
            for config in (journal, texts):
                await self._retry(lambda config=config: self._streams.add_stream(config))  # type: ignore[misc]
            self._keys = await self._retry(lambda: self._streams.create_key_value(keys))
        except (BadRequestError, NotFoundError) as error:
            raise StoreError(
                f"{self._where}: cannot create the streams of bucket {self.bucket}: {error.description}: "
                "set store.nats.replicas to the value with which the streams were created, and use servers with JetStream"
            ) from None

    async def delete(self) -> None:
        """Delete the streams of the bucket. Raises StoreError."""
        for name in (f"{self.bucket}-journal", f"{self.bucket}-texts", f"KV_{self.bucket}"):
            await self._retry(lambda name=name: self._streams.delete_stream(name))  # type: ignore[misc]

    async def lines(self) -> int:
        """Return the number of lines in the journal. Raises StoreError."""
        found = await self._retry(lambda: self._streams.stream_info(f"{self.bucket}-journal"))
        return found.state.last_seq

    async def line(self, number: int) -> bytes | None:
        """Return a line of the journal, or None if it does not exist. The first one has number 1. Raises StoreError."""
        try:
            found = await self._retry(lambda: self._streams.get_msg(f"{self.bucket}-journal", seq=number))
        except NotFoundError:
            return None
        return found.data or b""

    async def append(self, data: bytes, number: int, identifier: str) -> None:
        """Append a line with this number to the journal.

        Raises OvertakenError if another line has the number, and StoreError without an answer: the line may then still be appended.
        """
        headers = {api.Header.EXPECTED_LAST_SEQUENCE.value: str(number - 1), api.Header.MSG_ID.value: identifier}

        async def attempt() -> None:
            try:
                await self._streams.publish(f"{self.bucket}.journal", data, headers=dict(headers))
            except APIError as error:
                if error.err_code not in _WRONG_SEQUENCE:
                    raise
                # An earlier attempt may have been stored. A line in flight becomes visible later.
                found = await self.line(number)
                if found is None:
                    raise TimeoutError("a line is in flight") from None
                if found != data:
                    raise OvertakenError from None

        try:
            await self._retry(attempt)
        except BadRequestError as error:
            raise StoreError(f"{self._where}: the journal rejects a line: {error.description}: see the servers' logs") from None

    async def put_text(self, sha256: str, text: str) -> None:
        """Store a configuration. Raises StoreError."""
        data = zlib.compress(text.encode())
        await self._retry(lambda: self._streams.publish(f"{self.bucket}.text.{sha256}", data))

    async def text(self, sha256: str) -> str | None:
        """Return a configuration, or None if it does not exist. Raises StoreError."""
        subject = f"{self.bucket}.text.{sha256}"
        try:
            found = await self._retry(lambda: self._streams.get_msg(f"{self.bucket}-texts", subject=subject))
        except NotFoundError:
            return None
        return zlib.decompress(found.data or b"").decode()

    async def get(self, key: str) -> tuple[bytes, int] | None:
        """Return the value of a key and its revision, or None without a value. Raises StoreError."""
        assert self._keys is not None
        keys = self._keys
        try:
            found = await self._retry(lambda: keys.get(key))
        except KeyNotFoundError:
            return None
        return found.value or b"", found.revision or 0

    async def put(self, key: str, value: bytes) -> None:
        """Set the value of a key. Raises StoreError."""
        assert self._keys is not None
        keys = self._keys
        await self._retry(lambda: keys.put(key, value))

    async def replace(self, key: str, value: bytes, revision: int, seconds: float) -> int:
        """Set the value of a key that has this revision (0: no value), and return the new revision.

        Raises OvertakenError, and StoreError without an answer within ``seconds``: the value may then still be set.
        """
        assert self._keys is not None
        try:
            async with asyncio.timeout(seconds):
                return await self._keys.update(key, value, last=revision)
        except KeyWrongLastSequenceError:
            raise OvertakenError from None
        except (nats.errors.Error, TimeoutError) as error:
            raise StoreError(self._failed(error)) from None

    async def publish(self, subject: str, data: bytes = b"") -> None:
        """Send a message to all listeners of a subject. Raises StoreError."""
        try:
            await self._client.publish(f"{self.bucket}.{subject}", data)
        except (nats.errors.Error, TimeoutError) as error:
            raise StoreError(self._failed(error)) from None

    async def request(self, subject: str, data: bytes, seconds: float) -> bytes | None:
        """Return the answer of a listener, or None if nothing listens.

        Raises StoreError, although a listener may have received the request.
        """
        try:
            return bytes((await self._client.request(f"{self.bucket}.{subject}", data, timeout=seconds)).data)
        except nats.errors.NoRespondersError:
            return None
        except (nats.errors.Error, TimeoutError) as error:
            raise StoreError(self._failed(error)) from None

    async def listen(self, subject: str, on_message: Callable[[Msg], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
        """Subscribe to a subject, and return a function that ends the subscription. Raises StoreError."""
        try:
            subscription = await self._client.subscribe(f"{self.bucket}.{subject}", cb=on_message)
            await self._client.flush(timeout=round(OPERATION_TIMEOUT))
        except (nats.errors.Error, TimeoutError) as error:
            raise StoreError(self._failed(error)) from None
        return subscription.unsubscribe

    async def _retry(self, request: Callable[[], Awaitable[T]]) -> T:
        """Repeat an idempotent request until it is answered. Raises StoreError, NotFoundError and BadRequestError."""
        try:
            return await answered(request, OPERATION_TIMEOUT, goes_on=lambda: self.is_connected)
        except nats.errors.MaxPayloadError as error:
            raise StoreError(f"{self._where}: {error}: raise max_payload of the servers") from None
        except UnansweredError as error:
            raise StoreError(self._failed(error)) from None

    def _failed(self, error: Exception) -> str:
        why = str(error) or type(error).__name__
        return f"{self._where}: {why}: check that a majority of its servers is running and reachable"


def _context(settings: NatsStore) -> ssl.SSLContext | None:
    if settings.tls is None:
        return None
    try:
        context = ssl.create_default_context(cafile=settings.tls.authorities)
        if settings.tls.certificate is not None:
            load(settings.tls.certificate).check(settings.tls.certificate)
            context.load_cert_chain(settings.tls.certificate, settings.tls.key)
    except CertificateError as error:
        raise StoreError(f"store.nats.tls: {error}") from None
    except (OSError, ssl.SSLError) as error:
        raise StoreError(f"store.nats.tls: cannot load the certificates: {error}: correct the files") from None
    return context


def _credentials(settings: NatsStore) -> dict[str, str]:
    if settings.credentials is None:
        return {}
    try:
        text = settings.credentials.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{settings.credentials}: cannot be read: {error}: write USER:PASSWORD or a token there") from None
    user, colon, password = text.partition(":")
    return {"user": user, "password": password} if colon else {"token": text}
