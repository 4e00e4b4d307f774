# SPDX-License-Identifier: Apache-2.0
"""Download a URL with aioquic to file OUT, and again on a second connection: `return_aioquic.py OUT URL`.

The second connection has the session ticket and the token of the first one, and sends the request as early data.
"""

import asyncio
import sys
from pathlib import Path

from http3 import Visitor


async def main(out: str, url: str) -> None:
    visitor = Visitor(url)
    async with visitor.connect() as client:
        await client.get(url)
        await visitor.is_known.wait()  # the caller limits the time
    async with visitor.connect(wait_connected=False) as client:
        response = await client.get(url)
    assert response.headers[":status"] == "200", response.headers
    Path(out).write_bytes(response.body)


asyncio.run(main(*sys.argv[1:]))
