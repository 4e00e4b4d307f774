"""Asks for URLs of one server by aioquic, all at once on one connection: `get_all.py FOLDER URL...`.

Each body goes to FOLDER under the last part of its URL's path.
"""

import asyncio
import ssl
import sys
from pathlib import Path
from urllib.parse import urlsplit

from aioquic.asyncio import QuicConnectionProtocol, connect
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, QuicEvent

PATIENCE = 60.0


class Client(QuicConnectionProtocol):
    """Some requests, and what came of each."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)
        self.bodies: dict[int, bytearray] = {}
        self.names: dict[int, str] = {}
        self.left: set[int] = set()
        self.done = asyncio.get_running_loop().create_future()

    async def get(self, urls: list[str]) -> dict[str, bytes]:
        for parts in map(urlsplit, urls):
            stream = self._quic.get_next_available_stream_id()
            fields = {
                "method": "GET",
                "scheme": "https",
                "authority": parts.netloc,
                "path": parts.path,
            }
            headers = [
                (f":{name}".encode(), value.encode()) for name, value in fields.items()
            ]
            self.http.send_headers(stream, headers, end_stream=True)
            self.bodies[stream] = bytearray()
            self.names[stream] = Path(parts.path).name
            self.left.add(stream)
        self.transmit()
        await asyncio.wait_for(self.done, PATIENCE)
        return {self.names[stream]: bytes(body) for stream, body in self.bodies.items()}

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ConnectionTerminated) and not self.done.done():
            self.done.set_exception(ConnectionError(event.reason_phrase))
        for part in self.http.handle_event(event):
            if isinstance(part, HeadersReceived):
                assert dict(part.headers)[b":status"] == b"200", part.headers
            if isinstance(part, DataReceived):
                self.bodies[part.stream_id] += part.data
            if part.stream_ended:
                self.left.discard(part.stream_id)
            if not self.left and not self.done.done():
                self.done.set_result(None)


async def main(folder: str, *urls: str) -> None:
    parts = urlsplit(urls[0])
    configuration = QuicConfiguration(
        is_client=True, alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE
    )
    async with connect(
        parts.hostname,
        parts.port or 443,
        configuration=configuration,
        create_protocol=Client,
    ) as client:
        for name, body in (await client.get(list(urls))).items():
            (Path(folder) / name).write_bytes(body)


asyncio.run(main(*sys.argv[1:]))
