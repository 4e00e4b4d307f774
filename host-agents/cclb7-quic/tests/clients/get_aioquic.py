# SPDX-License-Identifier: Apache-2.0
"""Download a URL with aioquic: `get_aioquic.py OUT URL ['again: yes']`.

Write the body to file OUT, and print status and header fields as JSON. With `again`, repeat the request on the same connection
once OUT has been removed.
"""

import asyncio
import json
import sys
from pathlib import Path

from http3 import connect


async def main(out: str, url: str, again: str = "") -> None:
    async with connect(url) as client:
        for i in range(2 if again else 1):
            while i > 0 and Path(out).exists():
                await asyncio.sleep(0.01)
            response = await client.get(url)
            part = Path(f"{out}.part")
            part.write_bytes(response.body)
            part.rename(out)
        headers = response.headers
        print(json.dumps({"status": int(headers.pop(":status")), **headers}))


asyncio.run(main(*sys.argv[1:]))
