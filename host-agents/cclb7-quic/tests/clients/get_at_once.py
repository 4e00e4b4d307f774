# SPDX-License-Identifier: Apache-2.0
"""Asks for a URL by aioquic, in the last datagram of the client's handshake: `get_at_once.py OUT URL`. The body goes to file OUT."""

import asyncio
import sys
from pathlib import Path

from http3 import connect


async def main(out: str, url: str) -> None:
    async with connect(url, wait_connected=False) as client:
        answer = await client.get(url)
    assert answer.headers[":status"] == "200", answer.headers
    Path(out).write_bytes(answer.body)


asyncio.run(main(*sys.argv[1:]))
