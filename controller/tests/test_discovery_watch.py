# SPDX-License-Identifier: Apache-2.0
"""Watches of sources: a change is noticed long before the interval of queries is over."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from frontage.config import load
from frontage.config.discovery import FileSource, HttpSource, KubernetesSource
from frontage.discovery import watch as watches
from frontage.discovery.service import Discovery
from frontage.discovery.watch import FileWatch, KubernetesWatch, NoWatch, watch
from live import LIMIT
from test_discovery import EXAMPLE, slice_of

INTERVAL = 3600.0
"""Seconds between queries: no test waits for one."""


class ApiServer:
    """An HTTP server with the EndpointSlices of one service, which streams events to watches."""

    def __init__(self) -> None:
        self.slices: list[dict[str, object]] = []
        self.status = 200
        self.watching: queue.Queue[queue.Queue[dict[str, object] | None]] = queue.Queue()
        """The events of each watch; None ends it."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if server.status != 200:
                    self.send_error(server.status)
                elif "watch=true" in self.path:
                    self._stream()
                else:
                    body = json.dumps({"items": server.slices}).encode()
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def _stream(self) -> None:
                events: queue.Queue[dict[str, object] | None] = queue.Queue()
                for found in server.slices:
                    events.put({"type": "ADDED", "object": found})
                server.watching.put(events)
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                try:
                    while (event := events.get(timeout=LIMIT)) is not None:
                        line = json.dumps(event).encode() + b"\n"
                        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
                    self.wfile.write(b"0\r\n\r\n")
                except (OSError, queue.Empty):
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def source(self) -> KubernetesSource:
        url = f"http://127.0.0.1:{self.server.server_port}"
        return KubernetesSource(kind="kubernetes", url=url, service="web", sids=(100, 109), interval=INTERVAL)


@pytest.fixture
def api_server() -> Iterator[ApiServer]:
    server = ApiServer()
    yield server
    server.server.shutdown()
    server.server.server_close()


def test_only_files_and_kubernetes_are_watched(tmp_path: Path) -> None:
    file = FileSource(kind="file", path=tmp_path / "targets.json", sids=(1, 2))
    http = HttpSource(kind="http", url="http://127.0.0.1:1/", sids=(1, 2))
    assert isinstance(watch(file), FileWatch)
    assert isinstance(watch(http), NoWatch)


@pytest.mark.parametrize("replaced", [False, True])
async def test_change_of_a_file_is_noticed(tmp_path: Path, *, replaced: bool) -> None:
    path = tmp_path / "targets.json"
    path.write_text("[]")
    watching = FileWatch(path)
    waiting = asyncio.create_task(watching.wait(INTERVAL))
    await asyncio.sleep(2 * watches.FILE_INTERVAL)
    assert not waiting.done()
    if replaced:
        (tmp_path / "new").write_text("[]")
        (tmp_path / "new").rename(path)
    else:
        path.write_text('[{"targets": []}]')
    await asyncio.wait_for(waiting, LIMIT)


async def test_file_that_appears_is_noticed(tmp_path: Path) -> None:
    watching = FileWatch(tmp_path / "targets.json")
    (tmp_path / "targets.json").write_text("[]")
    await asyncio.wait_for(watching.wait(INTERVAL), LIMIT)


async def test_wait_ends_with_the_interval(tmp_path: Path, api_server: ApiServer) -> None:
    for watching in (FileWatch(tmp_path / "targets.json"), KubernetesWatch(api_server.source()), NoWatch()):
        began = time.monotonic()
        await asyncio.wait_for(watching.wait(0.2), LIMIT)
        assert time.monotonic() - began >= 0.2
        watching.close()


async def test_servers_follow_the_watch_of_kubernetes(api_server: ApiServer, tmp_path: Path) -> None:
    api_server.slices = [slice_of("10.0.0.1")]
    changes: asyncio.Queue[int] = asyncio.Queue()
    discovery = Discovery(tmp_path / "frontage.yaml", lambda: changes.put(1))
    config = load(EXAMPLE)
    vip = next(vip for vip in config.vips if vip.address.version == 4)
    watched = vip.model_copy(update={"discovery": api_server.source()})
    discovery.follow(config.model_copy(update={"vips": (watched,)}))

    async def addresses() -> set[str]:
        await asyncio.wait_for(changes.get(), LIMIT)
        return {str(server.address) for server in discovery.rosters[vip.name].servers(vip.name, None) if server.active}

    try:
        assert await addresses() == {"10.0.0.1"}
        events = await asyncio.to_thread(api_server.watching.get, timeout=LIMIT)
        api_server.slices = [slice_of("10.0.0.2")]
        events.put({"type": "MODIFIED", "object": api_server.slices[0]})
        assert await addresses() == {"10.0.0.2"}
        # The server ends the watch. The next one begins with the objects that exist.
        api_server.slices = [slice_of("10.0.0.3")]
        events.put(None)
        assert await addresses() == {"10.0.0.3"}
    finally:
        await discovery.close()


async def test_refused_watch_is_tried_again(api_server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, "RETRIES", (0.05, 0.1))
    api_server.status = 403
    watching = KubernetesWatch(api_server.source())
    await asyncio.sleep(0.3)
    assert api_server.watching.empty()
    api_server.status = 200
    api_server.slices = [slice_of("10.0.0.1")]
    await asyncio.wait_for(watching.wait(INTERVAL), LIMIT)
    watching.close()


async def test_closed_watch_ends_its_thread(api_server: ApiServer) -> None:
    before = threading.active_count()
    watching = KubernetesWatch(api_server.source())
    events = await asyncio.to_thread(api_server.watching.get, timeout=LIMIT)
    watching.close()
    deadline = time.monotonic() + LIMIT
    while any(thread.name == "discovery-watch" for thread in threading.enumerate()):
        assert time.monotonic() < deadline, f"{threading.active_count()} threads, {before} before"
        await asyncio.sleep(0.02)
    events.put(None)
