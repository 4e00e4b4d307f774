"""A client of the HTTP server, which raises what the store would have raised there."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Any, Self

import aiohttp

from frontage.records.document import Value, check_guid, encode
from frontage.records.errors import BY_CODE, EngineError, OutcomeUnknownError, RecordError
from frontage.records.record import Clock, Consistency, Record, Written, now_us

_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=30)
"""Seconds. A subscription never ends by itself; a server that lives is never so long silent."""
_EVENT_BYTES = 1 << 21
"""The longest line of a subscription: a document, escaped."""


class RecordClient:
    """For use as an asynchronous context manager. Raises RecordErrors: EngineError also where the server cannot be reached."""

    def __init__(self, url: str, *, token: str | None = None, tls: ssl.SSLContext | None = None, clock: Clock = now_us):
        """``url``: for example ``http://127.0.0.1:8480``; ``token``: the bearer's; ``tls``: which servers are believed, and the
        client's own certificate, for ``https``; ``clock`` stamps what is written."""
        self._url = url.rstrip("/")
        self._authorization = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._tls: ssl.SSLContext | bool = tls or True
        self._clock = clock
        self._last = 0
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._tls)
        self._session = aiohttp.ClientSession(
            connector=connector, headers=self._authorization, timeout=_TIMEOUT, read_bufsize=_EVENT_BYTES
        )
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, guid: str) -> Record:
        return _record(await self._ask("GET", guid))

    async def put(
        self,
        guid: str,
        value: Value,
        *,
        consistency: Consistency | None = None,
        stamp: int | None = None,
        if_version: int | None = None,
    ) -> Written:
        """``if_version`` 0: only if it is not there. Without ``stamp`` it is later than that of this client's last write."""
        document = encode(value, _EVENT_BYTES)
        query = {} if consistency is None else {"consistency": consistency.value}
        answer = await self._ask("PUT", guid, headers=self._headers(stamp, if_version), params=query, data=document)
        return Written(_record(answer | {"value": value}), bool(answer["applied"]))

    async def delete(self, guid: str, *, stamp: int | None = None, if_version: int | None = None) -> Written:
        answer = await self._ask("DELETE", guid, headers=self._headers(stamp, if_version))
        return Written(_record(answer | {"value": None}), bool(answer["applied"]))

    async def subscribe(self, guid: str) -> AsyncIterator[Record]:
        """Its state, if it has one, and the later ones; a deleted record has no document. Ends when the server does."""
        async with self._request("GET", guid, "/changes") as response:
            kind = ""
            async for line in response.content:
                field, _, text = line.decode().rstrip("\r\n").partition(": ")
                if field == "event":
                    kind = text
                elif field == "data" and kind == "error":
                    raise _error(json.loads(text))
                elif field == "data":
                    yield _record(json.loads(text))

    async def sites(self, guid: str) -> tuple[int, ...]:
        return tuple((await self._ask("GET", guid, "/sites"))["sites"])

    async def place(self, guid: str, sites: Sequence[int]) -> None:
        await self._ask("PUT", guid, "/sites", json={"sites": list(sites)})

    def _headers(self, stamp: int | None, if_version: int | None) -> dict[str, str]:
        if stamp is None:
            # A clock that stands still or is set back must not make this client's own later write the earlier one.
            stamp = self._last = max(self._clock(), self._last + 1)
        headers = {"Frontage-Stamp": str(stamp)}
        if if_version is not None:
            headers |= {"If-Match": f'"{if_version}"'} if if_version else {"If-None-Match": "*"}
        return headers

    async def _ask(self, method: str, guid: str, rest: str = "", **options: Any) -> dict[str, Any]:
        async with self._request(method, guid, rest, **options) as response:
            found: dict[str, Any] = await response.json()
            return found

    def _request(self, method: str, guid: str, rest: str = "", **options: Any) -> _Answer:
        if self._session is None:
            raise RuntimeError("use RecordClient as an asynchronous context manager")
        return _Answer(self._session, method, f"{self._url}/records/{check_guid(guid)}{rest}", options)


class _Answer:
    """A request whose refusal is raised, and whose loss is named by what it leaves open."""

    def __init__(self, session: aiohttp.ClientSession, method: str, url: str, options: dict[str, Any]):
        self._method, self._url = method, url
        self._request = session.request(method, url, **options)

    async def __aenter__(self) -> aiohttp.ClientResponse:
        try:
            response = await self._request.__aenter__()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._lost(error) from None
        if response.status < 400:
            return response
        try:
            problem = await response.json()
        except (aiohttp.ClientError, ValueError):
            problem = {"message": f"{self._url}: {response.status} {response.reason}"}
        await self._request.__aexit__(None, None, None)
        raise _error(problem)

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._request.__aexit__(kind, error, trace)
        if isinstance(error, aiohttp.ClientError | TimeoutError):
            raise self._lost(error) from None

    def _lost(self, error: Exception) -> RecordError:
        why = f"{self._url}: {error or type(error).__name__}"
        if self._method == "GET" or isinstance(error, aiohttp.ClientConnectorError):
            return EngineError(f"{why}; is the server running?")
        return OutcomeUnknownError(f"{why}: the server may have done it; read the record to see")


def _error(problem: dict[str, Any]) -> RecordError:
    return BY_CODE.get(str(problem.get("error")), RecordError)(str(problem.get("message")))


def _record(found: dict[str, Any]) -> Record:
    document = None if found["value"] is None else encode(found["value"], _EVENT_BYTES)
    return Record(found["guid"], Consistency(found["consistency"]), found["version"], found["stamp"], document)
