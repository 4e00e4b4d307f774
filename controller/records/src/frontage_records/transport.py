# SPDX-License-Identifier: Apache-2.0
"""HTTP requests of a client to record servers, along the route that `routing` gives.

A refusal is raised as the error of the server's store.
"""

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
from frontage_records.errors import EngineError, NotFoundError, OutcomeUnknownError, RecordError, from_problem
from frontage_records.record import Consistency
from frontage_records.routing import Question, Router, Routing, Step

EVENT_BYTES = 1 << 21
"""Bytes of the longest line of a subscription: an escaped document."""
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=30)
"""Seconds. A subscription has no total limit; a live server is never silent for as long as `sock_read`."""
_PING_INTERVAL = 60.0
"""Seconds between pings of the sites."""
_PING_TIMEOUT = 1.0
"""Seconds to wait for a TCP connection."""
_FIRST_PAUSE = 0.1
"""Seconds until a request that all sites have failed to answer is repeated. Each pause doubles."""
_SITE_SHARE = 0.5
"""Largest share of the time until the deadline that one site gets. The timeout of a dead site grows, and would leave no time for others."""
_MIN_ATTEMPT = 1.0
"""Seconds that a site gets at least: shorter attempts would only add load to busy servers."""

T = TypeVar("T")


class ServerPool:
    """The record servers of one instance by site. Call `open` first, `close` last."""

    def __init__(self, urls: Mapping[int, str], token: str | None, tls: ssl.SSLContext | None, routing: Routing | None):
        """Raises ValueError without servers."""
        self._authorization = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._tls: ssl.SSLContext | bool = tls or True
        self._urls = {site: url.rstrip("/") for site, url in urls.items()}
        self.router = Router(self._urls, routing)
        self._session: aiohttp.ClientSession | None = None
        self._pinging: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open the session. With several sites, ping each of them once, for at most a second."""
        connector = aiohttp.TCPConnector(ssl=self._tls)
        self._session = aiohttp.ClientSession(
            connector=connector, headers=self._authorization, timeout=_TIMEOUT, read_bufsize=EVENT_BYTES
        )
        if len(self._urls) > 1:
            await self.ping()
            self._pinging = asyncio.create_task(self._ping_periodically())

    async def close(self) -> None:
        """Close the session."""
        if self._pinging is not None:
            self._pinging.cancel()
            await asyncio.gather(self._pinging, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def ping(self) -> None:
        """Measure the RTT to every site as the time of a TCP handshake."""
        await asyncio.gather(*(self._ping(site, URL(url)) for site, url in self._urls.items()))

    async def ask(self, method: str, guid: str, rest: str = "", *, timed: bool = False, **options: Any) -> dict[str, Any]:
        """Send a request and return the JSON response.

        ``timed``: whether the duration measures the server alone, and not other servers that it has to ask.
        """

        async def send(step: Step) -> tuple[dict[str, Any], bool]:
            async with self._request(step, method, guid, rest, options) as response:
                found: dict[str, Any] = await response.json()
                # A linearizable read also waits for the site that orders the record's writes.
                return found, timed and found.get("consistency") != Consistency.TOTAL

        return await self._send_along_route(method, guid, send, missing=method in ("PUT", "PATCH"))

    @contextlib.asynccontextmanager
    async def stream(self, guid: str, rest: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open a streaming response. If it fails after its start, the reader has to request it again."""

        async def send(step: Step) -> tuple[tuple[_Answer, aiohttp.ClientResponse], bool]:
            answer = self._request(step, "GET", guid, rest, {})
            return (answer, await answer.__aenter__()), False

        answer, response = await self._send_along_route("GET", guid, send, missing=True)
        try:
            yield response
        except BaseException as error:
            await answer.__aexit__(type(error), error, error.__traceback__)
            raise
        else:
            await answer.__aexit__(None, None, None)

    async def _send_along_route(
        self, method: str, guid: str, send: Callable[[Step], Awaitable[tuple[T, bool]]], *, missing: bool
    ) -> T:
        """Try site after site until one answers, again and again until the deadline. A write is retried only if it is known not to
        have been done.

        ``missing``: also send requests for a record that does not exist, to the sites where it would be created.
        """
        check_guid(guid)
        end, pause = monotonic() + self.router.routing.deadline, _FIRST_PAUSE
        while True:
            try:
                return await self._try_each_site(method, guid, send, end, missing=missing)
            except EngineError:
                # With a single server there is nothing to fail over to, so the caller learns at once that it is down.
                if len(self._urls) == 1 or monotonic() + pause + _MIN_ATTEMPT > end:
                    raise
            await asyncio.sleep(pause)
            pause *= 2
            self.router.forget(guid)

    async def _try_each_site(
        self, method: str, guid: str, send: Callable[[Step], Awaitable[tuple[T, bool]]], end: float, *, missing: bool
    ) -> T:
        """Try each site once. Raises EngineError if none answers; nothing has been done then."""
        route = self.router.route(guid, monotonic())
        failure = EngineError("no site left to try")
        while (step := route.step()) is not None:
            began = monotonic()
            reading = method == "GET" or step.question is Question.ACTIVES
            try:
                # With a single server there is nothing to fail over to, so the request has no timeout.
                limit = (
                    min(step.timeout, max(_MIN_ATTEMPT, (end - began) * _SITE_SHARE)) if reading and len(self._urls) > 1 else None
                )
                async with asyncio.timeout(limit):
                    if step.question is Question.ACTIVES:
                        route.on_replicas(step, await self._actives(step, guid), monotonic())
                        continue
                    answer, timed = await send(step)
            except TimeoutError:
                failure = EngineError(f"{self._urls[step.site]}: no answer for {monotonic() - began:.1f} s")
                route.on_failure(step)
            except (EngineError, OutcomeUnknownError) as error:
                route.on_failure(step)
                if isinstance(error, OutcomeUnknownError) and not reading:
                    raise
                failure = EngineError(str(error))
            except NotFoundError:
                if step.question is Question.REQUEST and not route.is_fresh:
                    route.on_missing(step)
                elif step.question is Question.ACTIVES and missing:
                    route.on_replicas(step, (), monotonic())
                else:
                    raise
            else:
                route.on_answer(step, monotonic() - began if timed else None)
                return answer
        raise failure

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

    async def _ping_periodically(self) -> None:
        while True:
            await asyncio.sleep(_PING_INTERVAL)
            await self.ping()


class _Answer:
    """A request in progress. Refusals are raised; lost connections become EngineError or OutcomeUnknownError."""

    def __init__(self, session: aiohttp.ClientSession, method: str, url: str, options: dict[str, Any]):
        self._method, self._url = method, url
        # aiohttp repeats a PUT when a kept-alive connection is lost. The repetition could undo a write made in between.
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
        raise from_problem(problem)

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._request.__aexit__(kind, error, trace)
        if isinstance(error, aiohttp.ClientError | TimeoutError):
            raise self._lost(error) from None

    def _lost(self, error: Exception) -> RecordError:
        why = f"{self._url}: {error or type(error).__name__}"
        if self._method == "GET" or isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            return EngineError(f"{why}: check that the server is running")
        return OutcomeUnknownError(f"{why}: the server may have done it: read the record to find out")


class _Once:
    """Middleware that sends a request once and prevents repetition."""

    def __init__(self) -> None:
        self._sent = False

    async def __call__(self, request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        if self._sent:
            raise aiohttp.ServerDisconnectedError
        self._sent = True
        return await send(request)
