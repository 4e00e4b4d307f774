# SPDX-License-Identifier: Apache-2.0
"""Common code of the NATS JetStream clients: connections, supported servers, and retries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import nats
import nats.errors
from nats.aio.client import Client
from nats.js.errors import BadRequestError, NotFoundError

MIN_SERVER_VERSION = 2, 11
"""The first version of nats-server whose replicated streams refuse overtaken messages. It lost nothing in tests with `kill -9`,
unlike 2.9.10 (docs/records.md)."""
RETRY_DELAY = 0.05
"""Seconds between attempts."""

_FIXES = {
    "CERTIFICATE_REQUIRED": "the servers require a client certificate",
    "ALERT_BAD_CERTIFICATE": "the servers reject the certificate of this client",
    "ALERT_UNKNOWN_CA": "the servers do not know the authority of this client's certificate",
    "ALERT_CERTIFICATE_EXPIRED": "the certificate of this client has expired",
    "certificate has expired": "the certificate of the server has expired",
    "unable to get local issuer": "the authority of the server's certificate is unknown",
    "self-signed certificate": "the authority of the server's certificate is unknown",
    "IP address mismatch": "the server's certificate is for another name",
    "Hostname mismatch": "the server's certificate is for another name",
    "Authorization Violation": "the servers reject the credentials",
}
"""Explanations of TLS and server errors, by a part of their text."""

T = TypeVar("T")


class UnansweredError(Exception):
    """No server has answered in time; the message is that of the last attempt."""


async def connect(servers: Sequence[str], seconds: float, ping_interval: int, **options: Any) -> Client:
    """Connect to one of the servers. The client reconnects without limit. Raises UnansweredError if no server is usable in time."""
    problems: dict[str, None] = {}

    def note(error: Exception) -> None:
        problems[str(error) or type(error).__name__] = None

    async def on_error(error: Exception) -> None:
        note(error)
        # The client sometimes ignores that it is cancelled, and would then try forever.
        if limit.expired():
            raise TimeoutError

    try:
        async with asyncio.timeout(seconds) as limit:
            client = await nats.connect(
                list(servers),
                max_reconnect_attempts=-1,
                reconnect_time_wait=0.2,
                connect_timeout=2,
                error_cb=on_error,
                ping_interval=ping_interval,
                max_outstanding_pings=2,
                **options,
            )
        if not limit.expired():
            return client
        await client.close()
    except TimeoutError:
        pass
    except (OSError, nats.errors.Error) as error:
        note(error)
    # An attempt may fail in several ways, for example when it writes to a connection that the server has closed.
    meanings = (f"{meaning}: {text}" for text in problems for part, meaning in _FIXES.items() if part in text)
    raise UnansweredError(next(meanings, next(reversed(problems), "no answer")))


def is_too_old(client: Client) -> bool:
    """Return whether the connected server may lose acknowledged writes."""
    version = client.connected_server_version
    return (version.major, version.minor) < MIN_SERVER_VERSION


async def answered(request: Callable[[], Awaitable[T]], seconds: float, *, goes_on: Callable[[], bool] = lambda: True) -> T:
    """Repeat an idempotent request until it is answered, as long as ``goes_on`` is true.

    Raises UnansweredError after ``seconds``, and NotFoundError, BadRequestError and MaxPayloadError, which another attempt would not
    change.
    """
    problem: Exception = TimeoutError()
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    return await request()
                except (NotFoundError, BadRequestError, nats.errors.MaxPayloadError):
                    raise
                except (nats.errors.Error, TimeoutError) as error:
                    problem = error
                    if not goes_on():
                        break
                    await asyncio.sleep(RETRY_DELAY)
    except TimeoutError:
        pass
    raise UnansweredError(str(problem) or type(problem).__name__)
