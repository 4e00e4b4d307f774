# SPDX-License-Identifier: Apache-2.0
"""Reads the metrics of servers' agents while clients look at them.

Readings go on in the background: a sample shows the last one with its age, so that no agent delays it. Clients that ask at the same
time share a reading.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import httpx

from frontage.config.agent_metrics import AgentMetrics
from frontage.service.streams import Delegated, MetricsError, parse
from frontage.stamps import Stamp, stamp
from frontage.tls import explain

MIN_INTERVAL = 0.4
"""Minimum time from the start of one reading of an endpoint to the next, in seconds."""
TIMEOUT = 2.0
"""Seconds that a reading may take."""
MAX_BYTES = 1 << 20
"""Maximum size of an agent's text in bytes: enough for 400 real servers."""
MAX_READINGS = 32
"""Maximum number of concurrent readings."""
FORGET_AFTER = 60.0
"""Seconds after which an unused reading is forgotten."""

_HEADERS = {"Accept": "application/openmetrics-text; version=1.0.0", "Accept-Encoding": "identity", "User-Agent": "frontage"}
_FIXES = {
    "certificate has expired": "renew the certificate of the agent",
    "mismatch, certificate is not valid": "use a name in the certificate of the agent",
    "self-signed certificate": "give its authority as `ca_file`",
    "unable to get local issuer": "give its authority as `ca_file`",
}
"""How to correct faults, by a part of OpenSSL's message."""


@dataclass(slots=True)
class AgentReading:
    """The last successful reading of an endpoint."""

    time: float | None = None
    """Unix time; None before the first one."""
    delegated: Delegated = field(default_factory=Delegated)
    error: str | None = None
    """Why the last attempt failed; None if it did not."""


class _Endpoint:
    """An endpoint, with its last reading."""

    def __init__(self, settings: AgentMetrics, slots: asyncio.Semaphore):
        self.reading = AgentReading()
        self.asked = 0.0
        """The time of the last request, on the monotonic clock."""
        self._settings = settings
        self._slots = slots
        self._began = float("-inf")
        self._task: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        return self._task is not None and not self._task.done()

    def refresh(self, now: float) -> None:
        """Begin a reading, unless one is going on or has just begun."""
        self.asked = now
        if not self.is_busy and now - self._began >= MIN_INTERVAL:
            self._began = now
            self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            async with self._slots, asyncio.timeout(TIMEOUT):
                text = await _download(self._settings)
                delegated = await asyncio.to_thread(parse, text)
        except TimeoutError:
            self.reading.error = f"no complete response within {TIMEOUT:g} s: see whether the agent runs"
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            self.reading.error = f"unreachable: {explain(error, _FIXES)}"
        except MetricsError as error:
            self.reading.error = str(error)
        else:
            self.reading = AgentReading(time.time(), delegated)


class Agents:
    """The endpoints that clients look at."""

    def __init__(self) -> None:
        self._endpoints: dict[AgentMetrics, _Endpoint] = {}
        self._slots = asyncio.Semaphore(MAX_READINGS)

    def refresh(self, wanted: Iterable[AgentMetrics]) -> None:
        """Begin to read these endpoints, and forget those that are no longer in use. This does not wait."""
        now = time.monotonic()
        for settings in set(wanted):
            self._endpoints.setdefault(settings, _Endpoint(settings, self._slots)).refresh(now)
        self._endpoints = {
            settings: endpoint
            for settings, endpoint in self._endpoints.items()
            if endpoint.is_busy or now - endpoint.asked < FORGET_AFTER
        }

    def reading(self, settings: AgentMetrics) -> AgentReading:
        """Return the last reading of an endpoint."""
        endpoint = self._endpoints.get(settings)
        return AgentReading() if endpoint is None else endpoint.reading


async def _download(settings: AgentMetrics) -> str:
    """Return the text of an endpoint. Raises MetricsError, httpx.HTTPError and httpx.InvalidURL.

    Proxies of the environment are not used, redirects are not followed, and compressed text is not unpacked. Otherwise, somebody else
    than the author of the configuration could choose what is read, or how much.
    """
    context = await asyncio.to_thread(_context, settings.ca_file)
    transport = httpx.AsyncHTTPTransport(verify=context)
    async with (
        httpx.AsyncClient(transport=transport, trust_env=False, timeout=TIMEOUT) as client,
        client.stream("GET", settings.url, headers=_HEADERS, follow_redirects=False) as response,
    ):
        if response.is_redirect:
            raise MetricsError(f"redirects to {response.headers['Location']:.200}: give the URL that has the metrics")
        if response.status_code != httpx.codes.OK:
            raise MetricsError(f"status {response.status_code}: give the URL of the agent's metrics")
        data = bytearray()
        async for part in response.aiter_raw():
            data += part
            if len(data) > MAX_BYTES:
                raise MetricsError(f"more than {MAX_BYTES} bytes: give the URL of the agent's metrics")
    return data.decode(errors="replace")


def _context(authorities: Path | None) -> ssl.SSLContext:
    """Return the TLS context for a file of authorities, or for the system's. Raises MetricsError."""
    try:
        return _loaded(authorities, None if authorities is None else stamp(authorities))
    except OSError as error:  # also ssl.SSLError
        raise MetricsError(f"{authorities}: cannot load the authorities: {error}: use a PEM file") from None


@lru_cache(maxsize=16)
def _loaded(authorities: Path | None, _stamp: Stamp | None) -> ssl.SSLContext:
    """Return the context, and keep it until the file changes."""
    return ssl.create_default_context(cafile=authorities)
