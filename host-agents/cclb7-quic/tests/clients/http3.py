# SPDX-License-Identifier: Apache-2.0
"""HTTP/3 requests with aioquic on one connection."""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from aioquic.asyncio import QuicConnectionProtocol
from aioquic.asyncio import connect as connect_quic
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, QuicEvent


@dataclass
class Response:
    """A response as received so far."""

    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)


class Client(QuicConnectionProtocol):
    """A connection with any number of concurrent requests."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self._http = H3Connection(self._quic)
        self._responses: dict[int, Response] = {}
        self._done: dict[int, asyncio.Future] = {}

    async def get(self, url: str) -> Response:
        """Return the response when it is complete."""
        parts = urlsplit(url)
        fields = {
            "method": "GET",
            "scheme": "https",
            "authority": parts.netloc,
            "path": parts.path,
        }
        headers = [(f":{name}".encode(), value.encode()) for name, value in fields.items()]
        stream = self._quic.get_next_available_stream_id()
        self._http.send_headers(stream, headers, end_stream=True)
        response = self._responses[stream] = Response()
        done = self._done[stream] = asyncio.get_running_loop().create_future()
        self.transmit()
        await done  # the caller limits the time
        return response

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ConnectionTerminated):
            for done in self._done.values():
                if not done.done():
                    done.set_exception(ConnectionError(event.reason_phrase))
        for part in self._http.handle_event(event):
            response = self._responses.get(getattr(part, "stream_id", None))
            if response and isinstance(part, HeadersReceived):
                response.headers.update((name.decode(), value.decode()) for name, value in part.headers)
            if response and isinstance(part, DataReceived):
                response.body += part.data
            if response and part.stream_ended and not self._done[part.stream_id].done():
                self._done[part.stream_id].set_result(None)


class Visitor:
    """Connects to the server of `url`, whose certificate is not verified, with the newest session ticket and token if there
    are any.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname, parts.port or 443)
        self._configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE)
        self.is_known = asyncio.Event()
        """Set when there are a session ticket and a token."""

    def connect(self, wait_connected: bool = True) -> AbstractAsyncContextManager[Client]:
        """Connect to the server.

        With `wait_connected=False`, the first requests are early data if there is a session ticket. Otherwise, they are sent in
        the last datagram of the handshake.
        """
        return connect_quic(
            *self._address,
            configuration=self._configuration,
            create_protocol=Client,
            session_ticket_handler=self._set("session_ticket"),
            token_handler=self._set("token"),
            wait_connected=wait_connected,
        )

    def _set(self, name: str) -> Callable[[object], None]:
        def on_received(value: object) -> None:
            setattr(self._configuration, name, value)
            if self._configuration.session_ticket and self._configuration.token:
                self.is_known.set()

        return on_received


def connect(url: str, wait_connected: bool = True) -> AbstractAsyncContextManager[Client]:
    """Connect to the server of `url` for the first time; see `Visitor.connect`."""
    return Visitor(url).connect(wait_connected)
