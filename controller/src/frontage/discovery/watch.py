# SPDX-License-Identifier: Apache-2.0
"""Watches of sources, which trigger a query as soon as a source may have changed.

A watch only triggers the next query and carries no content, so lost or spurious events do no harm.
"""

from __future__ import annotations

import asyncio
import http.client
import logging
import threading
import urllib.parse
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from frontage.config.discovery import FileSource, KubernetesSource, Source
from frontage.discovery.sources import headers_of, slices_path, tls_of
from frontage.discovery.targets import SourceError
from frontage.stamps import stamp

log = logging.getLogger(__name__)

FILE_INTERVAL = 0.5
"""Seconds between checks of a file."""
MIN_PAUSE = 0.5
"""Seconds between two queries because of changes, so that many changes cause few queries."""
WATCH_SECONDS = 240
"""Seconds after which the API server ends a watch."""
GRACE = 30
"""Additional seconds without a message after which the connection counts as lost."""
MAX_LINE = 1 << 20
"""Bytes of an event to read at once."""
RETRIES = (1.0, 60.0)
"""Seconds until the first retry of a failed watch, and the maximum."""


class Watch(Protocol):
    """Waits for changes of a source."""

    async def wait(self, seconds: float) -> None:
        """Return when the source may have changed since the last call or the creation, at the latest after some seconds."""

    def close(self) -> None:
        """End the watch."""


def watch(source: Source) -> Watch:
    """Return a watch of a source. Only files and Kubernetes report changes."""
    if isinstance(source, FileSource):
        return FileWatch(source.path)
    if isinstance(source, KubernetesSource):
        return KubernetesWatch(source)
    return NoWatch()


class NoWatch:
    """The watch of a source that does not report changes."""

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def close(self) -> None:
        """Do nothing."""


class FileWatch:
    """Watches the stamp of a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = stamp(path)

    async def wait(self, seconds: float) -> None:
        deadline = asyncio.get_running_loop().time() + seconds
        while (left := deadline - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(min(FILE_INTERVAL, left))
            found = stamp(self._path)
            if found != self._seen:
                self._seen = found
                return

    def close(self) -> None:
        """Do nothing."""


class KubernetesWatch:
    """Watches the EndpointSlices of a service, in its own thread.

    Without a resource version, a watch begins with events for all existing objects, so nothing is lost between two watches.
    """

    def __init__(self, source: KubernetesSource) -> None:
        """Begin to watch. Must be called in a running event loop."""
        self._source = source
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._closed = threading.Event()
        self._connection: http.client.HTTPConnection | None = None
        threading.Thread(target=self._run, name="discovery-watch", daemon=True).start()

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(min(MIN_PAUSE, seconds))
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds - MIN_PAUSE)):
                await self._changed.wait()
        self._changed.clear()

    def close(self) -> None:
        self._closed.set()
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(2)

    def _run(self) -> None:
        pause = RETRIES[0]
        while not self._closed.is_set():
            try:
                self._watch()
                pause = RETRIES[0]
            except (OSError, ValueError, http.client.HTTPException, SourceError) as error:
                # The queries report errors of the source.
                log.debug("watch of %s: %s", self._source.url, error)
                pause = min(2 * pause, RETRIES[1])
            self._closed.wait(pause)

    def _watch(self) -> None:
        """Report each event until the server ends the watch."""
        connection = self._connect()
        self._connection = connection
        try:
            connection.request(
                "GET", slices_path(self._source, watch="true", timeoutSeconds=str(WATCH_SECONDS)), headers=headers_of(self._source)
            )
            response = connection.getresponse()
            if response.status != http.client.OK:
                raise SourceError(f"status {response.status}")
            while not self._closed.is_set() and response.readline(MAX_LINE):
                self._tell()
        finally:
            connection.close()

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._changed.set)

    def _connect(self) -> http.client.HTTPConnection:
        parts = urllib.parse.urlsplit(self._source.url)
        timeout = WATCH_SECONDS + GRACE
        if parts.scheme == "https":
            return http.client.HTTPSConnection(parts.netloc, timeout=timeout, context=tls_of(self._source))
        return http.client.HTTPConnection(parts.netloc, timeout=timeout)
