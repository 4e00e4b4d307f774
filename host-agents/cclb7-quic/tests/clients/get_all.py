# SPDX-License-Identifier: Apache-2.0
"""Asks for URLs of one server by aioquic, all at once on one connection: `get_all.py FOLDER URL...`.

Each body goes to FOLDER under the last part of its URL's path.
"""

import asyncio
import sys
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from http3 import connect


async def main(folder: str, *urls: str) -> None:
    async with connect(urls[0]) as client:
        answers = await asyncio.gather(*map(client.get, urls))
    for url, answer in zip(urls, answers, strict=True):
        assert answer.headers[":status"] == "200", answer.headers
        name = PurePosixPath(urlsplit(url).path).name
        (Path(folder) / name).write_bytes(answer.body)


asyncio.run(main(*sys.argv[1:]))
