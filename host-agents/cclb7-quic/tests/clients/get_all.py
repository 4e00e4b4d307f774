# SPDX-License-Identifier: Apache-2.0
"""Download URLs of one server with aioquic, concurrently on one connection: `get_all.py FOLDER URL...`.

Write each body to FOLDER under the last part of its URL's path.
"""

import asyncio
import sys
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from http3 import connect


async def main(folder: str, *urls: str) -> None:
    async with connect(urls[0]) as client:
        responses = await asyncio.gather(*map(client.get, urls))
    for url, response in zip(urls, responses, strict=True):
        assert response.headers[":status"] == "200", response.headers
        name = PurePosixPath(urlsplit(url).path).name
        (Path(folder) / name).write_bytes(response.body)


asyncio.run(main(*sys.argv[1:]))
