# SPDX-License-Identifier: Apache-2.0
"""A client of the HTTP servers. It raises the same errors as the store at the server.

With servers at several sites, it sends a request to the nearest one that has the record, and fails over to the next.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from time import monotonic
from types import TracebackType
from typing import Any, Self

from frontage_records import merges
from frontage_records.document import Value, encode
from frontage_records.errors import from_problem
from frontage_records.record import Clock, Consistency, Record, Written, now_us
from frontage_records.routing import Routing
from frontage_records.transport import EVENT_BYTES, ServerPool


class RecordClient:
    """A client, for use as an asynchronous context manager. Raises RecordError; EngineError also if no server can be reached."""

    def __init__(
        self,
        servers: str | Mapping[int, str],
        *,
        token: str | None = None,
        tls: ssl.SSLContext | None = None,
        routing: Routing | None = None,
        clock: Clock = now_us,
    ):
        """``servers``: the URL of one server, for example ``http://127.0.0.1:8480``, or the URLs of all sites by site id. ``token``: the
        bearer token. ``tls``: trusted authorities and the client's certificate, for ``https``. ``clock``: gives the stamps of
        writes. Raises ValueError if there are no servers.
        """
        self._servers = ServerPool({1: servers} if isinstance(servers, str) else servers, token, tls, routing)
        self.router = self._servers.router
        self._clock = clock
        self._last = 0

    async def __aenter__(self) -> Self:
        await self._servers.open()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._servers.close()

    async def get(self, guid: str) -> Record:
        """Return the record. Raises NotFoundError."""
        return _record(await self._servers.ask("GET", guid, timed=True))

    async def put(
        self,
        guid: str,
        value: Value,
        *,
        consistency: Consistency | None = None,
        stamp: int | None = None,
        if_version: int | None = None,
    ) -> Written:
        """Write the record. ``if_version`` 0: only if it does not exist. The default stamp is later than this client's last write."""
        document = encode(value, EVENT_BYTES)
        query = {} if consistency is None else {"consistency": consistency.value}
        answer = await self._servers.ask("PUT", guid, headers=self._headers(stamp, if_version), params=query, data=document)
        return Written(_record({"value": value} | answer), bool(answer["applied"]))

    async def update(self, guid: str, changes: Mapping[str, Any], *, consistency: Consistency | None = None) -> Written:
        """Apply these changes to a counter, set or map. ``consistency``: creates the record if it does not exist."""
        query = {} if consistency is None else {"consistency": consistency.value}
        answer = await self._servers.ask("PATCH", guid, params=query, data=encode(changes, EVENT_BYTES))
        return Written(_record(answer), bool(answer["applied"]))

    async def delete(self, guid: str, *, stamp: int | None = None, if_version: int | None = None) -> Written:
        """Delete the record. Raises NotFoundError."""
        answer = await self._servers.ask("DELETE", guid, headers=self._headers(stamp, if_version))
        return Written(_record({"value": None} | answer), bool(answer["applied"]))

    async def subscribe(self, guid: str) -> AsyncIterator[Record]:
        """Yield the record's present state, if any, then later ones. Deletions have no document. Ends when the server closes."""
        async with self._servers.stream(guid, "/changes") as response:
            kind = ""
            async for line in response.content:
                field, _, text = line.decode().rstrip("\r\n").partition(": ")
                if field == "event":
                    kind = text
                elif field == "data" and kind == "error":
                    raise from_problem(json.loads(text))
                elif field == "data":
                    yield _record(json.loads(text))

    async def sites(self, guid: str) -> tuple[int, ...]:
        """Return the record's replica set: the site that orders its writes, then the others."""
        return tuple((await self._servers.ask("GET", guid, "/sites"))["sites"])

    async def place(self, guid: str, sites: Sequence[int]) -> None:
        """Move the record to these sites. The first orders its writes."""
        placed = await self._servers.ask("PUT", guid, "/sites", json={"sites": list(sites)})
        self.router.learn(guid, placed["sites"], monotonic())

    def _headers(self, stamp: int | None, if_version: int | None) -> dict[str, str]:
        if stamp is None:
            # A clock that stops or is set back must not make this client's later write the earlier one.
            stamp = self._last = max(self._clock(), self._last + 1)
        headers = {"Frontage-Stamp": str(stamp)}
        if if_version is not None:
            headers |= {"If-Match": f'"{if_version}"'} if if_version else {"If-None-Match": "*"}
        return headers


def _record(found: dict[str, Any]) -> Record:
    consistency, value = Consistency(found["consistency"]), found["value"]
    document = None
    if value is not None:
        merge = consistency.merge
        document = encode(value, EVENT_BYTES) if merge is None else merges.encode(merges.of_value(merge, value))
    return Record(found["guid"], consistency, found["version"], found["stamp"], document)
