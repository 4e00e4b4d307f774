# SPDX-License-Identifier: Apache-2.0
"""HTTP/3 checks (RFC 9114): as HTTP checks, over QUIC."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, HandshakeCompleted, QuicEvent, StreamReset

from frontage.checks.failures import CheckFailedError, of_errno, of_timeout
from frontage.checks.http import MAX_BODY
from frontage.checks.messages import Target
from frontage.checks.sockets import family, source_port
from frontage.checks.streams import authority, host


async def check(target: Target, turn: int) -> None:
    """Check a server by HTTP/3. Raises CheckFailedError and CheckerFailedError."""
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, server_name=host(target))
    configuration.verify_mode = ssl.CERT_REQUIRED if target.verify else ssl.CERT_NONE
    sock = socket.socket(family(target), socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((target.source, source_port(target.sid, turn)))
        sock.connect((target.address, target.port))
        transport, client = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: _Client(QuicConnection(configuration=configuration), target), sock=sock
        )
    except OSError as error:
        sock.close()
        raise of_errno(error.errno or 0) from None
    try:
        async with asyncio.timeout(target.timeout):
            client.connect((target.address, target.port))
            await client.done
    except TimeoutError:
        raise of_timeout(target.timeout) from None
    finally:
        client.close()
        transport.close()


class _Connected:
    """A transport of a connected socket, for a library that names the destination of each datagram."""

    def __init__(self, transport: asyncio.DatagramTransport):
        self._transport = transport

    def sendto(self, data: bytes, _address: object) -> None:
        self._transport.sendto(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _Client(QuicConnectionProtocol):
    """One request. `done` ends when the response passes."""

    def __init__(self, quic: QuicConnection, target: Target):
        super().__init__(quic)
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._target = target
        self._http = H3Connection(quic)
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(_Connected(transport))  # type: ignore[arg-type]

    def datagram_received(self, data: bytes | str, addr: Any) -> None:  # noqa: ARG002
        super().datagram_received(data, (self._target.address, self._target.port))

    def error_received(self, exc: Exception) -> None:
        self._end(of_errno(exc.errno or 0) if isinstance(exc, OSError) else CheckFailedError(str(exc)))

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ConnectionTerminated):
            self._end(CheckFailedError(f"QUIC: {event.reason_phrase or f'error {event.error_code:#x}'}"))
        elif isinstance(event, StreamReset):
            self._end(CheckFailedError(f"the server reset the stream with error {event.error_code:#x}"))
        for response in self._http.handle_event(event):
            self._on_response(response)
        if isinstance(event, HandshakeCompleted):
            fields = {":method": "GET", ":scheme": "https", ":authority": authority(self._target), ":path": self._target.path}
            headers = [(name.encode(), value.encode()) for name, value in {**fields, "user-agent": "frontage-health-check"}.items()]
            self._http.send_headers(self._quic.get_next_available_stream_id(), headers, end_stream=True)
            self.transmit()

    def _on_response(self, event: H3Event) -> None:
        wanted = self._target.body
        if isinstance(event, HeadersReceived):
            status = int(dict(event.headers).get(b":status", b"0"))
            low, high = self._target.status
            if 100 <= status < 200:
                return
            if not low <= status <= high:
                self._end(CheckFailedError(f"status {status}"))
            elif wanted is None:
                self._end(None)
            elif event.stream_ended:
                self._end(CheckFailedError(f'the body does not contain "{wanted}"'))
        elif isinstance(event, DataReceived) and wanted is not None:
            self._body += event.data
            if wanted.encode() in self._body:
                self._end(None)
            elif event.stream_ended or len(self._body) > MAX_BODY:
                self._end(CheckFailedError(f'the body does not contain "{wanted}"'))

    def _end(self, error: Exception | None) -> None:
        if self.done.done():
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)
