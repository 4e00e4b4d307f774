# SPDX-License-Identifier: Apache-2.0
"""Download a URL with aioquic to file OUT: `get_at_once.py OUT URL`. The request is in the last datagram of the client's handshake."""

import asyncio
import sys
from pathlib import Path

from http3 import connect


async def main(out: str, url: str) -> None:
    async with connect(url, wait_connected=False) as client:
        response = await client.get(url)
    assert response.headers[":status"] == "200", response.headers
    Path(out).write_bytes(response.body)


asyncio.run(main(*sys.argv[1:]))
