# SPDX-License-Identifier: Apache-2.0
"""HTTP checks: the server responds with one of the expected status codes and, if asked for, a text in the body (RFC 9110)."""

from __future__ import annotations

import asyncio

import h11

from frontage.checks.failures import CheckFailedError
from frontage.checks.messages import Target
from frontage.checks.streams import authority, connected

MAX_BODY = 1 << 20
"""Bytes of the body that are searched."""
_READ = 1 << 16


async def check(target: Target, turn: int) -> None:
    """Check a server by HTTP/1.1, with TLS if the kind is https. Raises CheckFailedError and CheckerFailedError."""
    alpn = "http/1.1" if target.kind == "https" else None
    try:
        async with connected(target, turn, alpn) as (reader, writer):
            await _exchange(target, reader, writer)
    except h11.RemoteProtocolError as error:
        raise CheckFailedError(f"invalid HTTP response: {error}") from None


async def _exchange(target: Target, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    connection = h11.Connection(h11.CLIENT)
    headers = [("Host", authority(target)), ("User-Agent", "frontage-health-check"), ("Accept", "*/*")]
    writer.write(connection.send(h11.Request(method="GET", target=target.path, headers=headers)) or b"")
    writer.write(connection.send(h11.EndOfMessage()) or b"")
    body = b""
    wanted = target.body.encode() if target.body is not None else None
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            data = await reader.read(_READ)
            if not data and connection.their_state is h11.SEND_RESPONSE:
                raise CheckFailedError("the server closed the connection without a response")
            connection.receive_data(data)
        elif isinstance(event, h11.Response):
            low, high = target.status
            if not low <= event.status_code <= high:
                raise CheckFailedError(f"status {event.status_code}")
            if wanted is None:
                return
        elif isinstance(event, h11.Data) and wanted is not None:
            body += event.data
            if wanted in body:
                return
            if len(body) > MAX_BODY:
                raise CheckFailedError(f'the first {MAX_BODY >> 20} MiB of the body do not contain "{target.body}"')
        elif isinstance(event, h11.EndOfMessage):
            raise CheckFailedError(f'the body does not contain "{target.body}"')
