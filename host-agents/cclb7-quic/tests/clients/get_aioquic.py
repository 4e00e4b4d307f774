"""Asks for a URL by aioquic: `get_aioquic.py OUT URL ['again: yes']`.

The body goes to file OUT; status and fields come out as JSON. With `again` it asks once more on the same connection as soon as
somebody has removed OUT.
"""

import asyncio
import json
import ssl
import sys
from pathlib import Path
from urllib.parse import urlsplit

from aioquic.asyncio import QuicConnectionProtocol, connect
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, QuicEvent

PATIENCE = 30.0


class Client(QuicConnectionProtocol):
    """One request, and what came of it."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)
        self.headers: dict[str, str] = {}
        self.body = bytearray()
        self.done = asyncio.get_running_loop().create_future()

    async def get(self, url: str) -> None:
        self.body.clear()
        self.done = asyncio.get_running_loop().create_future()
        parts = urlsplit(url)
        fields = {
            "method": "GET",
            "scheme": "https",
            "authority": parts.netloc,
            "path": parts.path,
        }
        headers = [
            (f":{name}".encode(), value.encode()) for name, value in fields.items()
        ]
        stream = self._quic.get_next_available_stream_id()
        self.http.send_headers(stream, headers, end_stream=True)
        self.transmit()
        await asyncio.wait_for(self.done, PATIENCE)

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ConnectionTerminated) and not self.done.done():
            self.done.set_exception(ConnectionError(event.reason_phrase))
        for part in self.http.handle_event(event):
            if isinstance(part, HeadersReceived):
                self.headers.update(
                    (name.decode(), value.decode()) for name, value in part.headers
                )
            if isinstance(part, DataReceived):
                self.body += part.data
            if part.stream_ended and not self.done.done():
                self.done.set_result(None)


async def main(out: str, url: str, again: str = "") -> None:
    parts = urlsplit(url)
    configuration = QuicConfiguration(
        is_client=True, alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE
    )
    async with connect(
        parts.hostname,
        parts.port or 443,
        configuration=configuration,
        create_protocol=Client,
    ) as client:
        for i in range(2 if again else 1):
            while i > 0 and Path(out).exists():
                await asyncio.sleep(0.01)
            await client.get(url)
            part = Path(f"{out}.part")
            part.write_bytes(client.body)
            part.rename(out)
        print(
            json.dumps({"status": int(client.headers.pop(":status")), **client.headers})
        )


asyncio.run(main(*sys.argv[1:]))
