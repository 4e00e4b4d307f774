"""What a client sends to record servers over HTTP: along the way that `routing` says, and a refusal is raised as
what the server's store raised."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from time import monotonic
from types import TracebackType
from typing import Any, TypeVar

import aiohttp
from yarl import URL

from frontage_records.document import check_guid
from frontage_records.errors import EngineError, NotFoundError, OutcomeUnknownError, RecordError, raised
from frontage_records.record import Consistency
from frontage_records.routing import Question, Router, Routing, Step

EVENT_BYTES = 1 << 21
"""The longest line of a subscription: a document, escaped."""
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=30)
"""Seconds. A subscription never ends by itself; a server that lives is never so long silent."""
_PINGS = 60.0
"""Seconds from one look at how far the sites are to the next."""
_PING_TIMEOUT = 1.0

T = TypeVar("T")


class Servers:
    """Of one instance, by site. `open` first, `close` at last."""

    def __init__(self, urls: Mapping[int, str], token: str | None, tls: ssl.SSLContext | None, routing: Routing | None):
        """Raises ValueError if there are none."""
        self._authorization = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._tls: ssl.SSLContext | bool = tls or True
        self._urls = {site: url.rstrip("/") for site, url in urls.items()}
        self.router = Router(self._urls, routing)
        self._session: aiohttp.ClientSession | None = None
        self._pinging: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Returns when every site has been pinged, or has not answered for a second. One alone is not."""
        connector = aiohttp.TCPConnector(ssl=self._tls)
        self._session = aiohttp.ClientSession(
            connector=connector, headers=self._authorization, timeout=_TIMEOUT, read_bufsize=EVENT_BYTES
        )
        if len(self._urls) > 1:
            await self.ping()
            self._pinging = asyncio.create_task(self._ping_now_and_then())

    async def close(self) -> None:
        if self._pinging is not None:
            self._pinging.cancel()
            await asyncio.gather(self._pinging, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def ping(self) -> None:
        """Measure the round trip to every site: the time that a TCP connection takes."""
        await asyncio.gather(*(self._ping(site, URL(url)) for site, url in self._urls.items()))

    async def ask(self, method: str, guid: str, rest: str = "", *, timed: bool = False, **options: Any) -> dict[str, Any]:
        """``timed``: whether how long it takes says something of the server, and not of others that it has to ask."""

        async def send(step: Step) -> tuple[dict[str, Any], bool]:
            async with self._request(step, method, guid, rest, options) as response:
                found: dict[str, Any] = await response.json()
                # A linearizable read waits for the site that orders the record's writes.
                return found, timed and found.get("consistency") != Consistency.TOTAL

        return await self._along(method, guid, send, missing=method == "PUT")

    @contextlib.asynccontextmanager
    async def stream(self, guid: str, rest: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer that goes on. What fails once it has begun is the reader's to ask for again."""

        async def send(step: Step) -> tuple[tuple[_Answer, aiohttp.ClientResponse], bool]:
            answer = self._request(step, "GET", guid, rest, {})
            return (answer, await answer.__aenter__()), False

        answer, response = await self._along("GET", guid, send, missing=True)
        try:
            yield response
        except BaseException as error:
            await answer.__aexit__(type(error), error, error.__traceback__)
            raise
        else:
            await answer.__aexit__(None, None, None)

    async def _along(self, method: str, guid: str, send: Callable[[Step], Awaitable[tuple[T, bool]]], *, missing: bool) -> T:
        """From site to site until one answers. A write goes on to the next only where it is known not to have been done.
        ``missing``: a record that is not there is asked for as well, where it would be."""
        way = self.router.way(check_guid(guid), monotonic())
        lost: RecordError = EngineError("there is no site to ask")
        while (step := way.step()) is not None:
            began = monotonic()
            reading = method == "GET" or step.question is Question.ACTIVES
            try:
                # Who has one server alone has nobody to ask instead.
                async with asyncio.timeout(step.timeout if reading and len(self._urls) > 1 else None):
                    if step.question is Question.ACTIVES:
                        way.named(step, await self._actives(step, guid), monotonic())
                        continue
                    answer, timed = await send(step)
            except TimeoutError:
                lost = EngineError(f"{self._urls[step.site]}: no answer for {step.timeout:.1f} s")
                way.failed(step)
            except (EngineError, OutcomeUnknownError) as error:
                lost = error
                way.failed(step)
                if isinstance(error, OutcomeUnknownError) and not reading:
                    raise
            except NotFoundError:
                if step.question is Question.REQUEST and not way.fresh:
                    way.elsewhere(step)
                elif step.question is Question.ACTIVES and missing:
                    way.named(step, (), monotonic())
                else:
                    raise
            else:
                way.answered(step, monotonic() - began if timed else None)
                return answer
        raise lost

    async def _actives(self, step: Step, guid: str) -> tuple[int, ...]:
        async with self._request(step, "GET", guid, "/sites", {}) as response:
            return tuple((await response.json())["sites"])

    def _request(self, step: Step, method: str, guid: str, rest: str, options: dict[str, Any]) -> _Answer:
        if self._session is None:
            raise RuntimeError("use RecordClient as an asynchronous context manager")
        return _Answer(self._session, method, f"{self._urls[step.site]}/records/{guid}{rest}", options)

    async def _ping(self, site: int, url: URL) -> None:
        began = monotonic()
        try:
            async with asyncio.timeout(_PING_TIMEOUT):
                _, writer = await asyncio.open_connection(url.host, url.port)
        except (OSError, TimeoutError):
            self.router.latency[site].timed_out()
            return
        self.router.latency[site].pinged(monotonic() - began)
        writer.close()

    async def _ping_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(_PINGS)
            await self.ping()


class _Answer:
    """A request whose refusal is raised, and whose loss is named by what it leaves open."""

    def __init__(self, session: aiohttp.ClientSession, method: str, url: str, options: dict[str, Any]):
        self._method, self._url = method, url
        # aiohttp sends a PUT again where a kept connection is lost: of two alike the second may undo what another wrote between.
        once = () if method == "GET" else (_Once(),)
        self._request = session.request(method, url, middlewares=once, **options)

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
        raise raised(problem)

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._request.__aexit__(kind, error, trace)
        if isinstance(error, aiohttp.ClientError | TimeoutError):
            raise self._lost(error) from None

    def _lost(self, error: Exception) -> RecordError:
        why = f"{self._url}: {error or type(error).__name__}"
        if self._method == "GET" or isinstance(error, aiohttp.ClientConnectorError):
            return EngineError(f"{why}; is the server running?")
        return OutcomeUnknownError(f"{why}: the server may have done it; read the record to see")


class _Once:
    """Lets a request be sent, and not again."""

    def __init__(self) -> None:
        self._sent = False

    async def __call__(self, request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        if self._sent:
            raise aiohttp.ServerDisconnectedError
        self._sent = True
        return await send(request)
