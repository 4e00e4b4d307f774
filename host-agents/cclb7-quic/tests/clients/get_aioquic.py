# SPDX-License-Identifier: Apache-2.0
"""Asks for a URL by aioquic: `get_aioquic.py OUT URL ['again: yes']`.

The body goes to file OUT; status and fields come out as JSON. With `again` it asks once more on the same connection as soon as
somebody has removed OUT.
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
            answer = await client.get(url)
            part = Path(f"{out}.part")
            part.write_bytes(answer.body)
            part.rename(out)
        headers = answer.headers
        print(json.dumps({"status": int(headers.pop(":status")), **headers}))


asyncio.run(main(*sys.argv[1:]))
