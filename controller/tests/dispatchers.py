# SPDX-License-Identifier: Apache-2.0
"""The HTTP service of a dispatcher without its data plane. It handles tables like `host-agents/dispatcher`."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class RefusedError(Exception):
    def __init__(self, status: int, why: str):
        super().__init__(why)
        self.status = status


class FakeDispatcher:
    """One fake dispatcher."""

    def __init__(self, site: int):
        self.site = site
        self.version: int | None = None
        self.services: dict[int, str] = {}
        self.deployments: dict[int, int] = {}
        """Entries by service."""
        self.details: dict[str, dict[str, Any]] = {}
        self.clients: dict[str, int] = {}
        self.mapping: dict[tuple[int, int], list[int]] = {}
        self.replicas: list[dict[str, Any]] = []
        self.measurements: list[dict[str, Any]] = []
        self.probed: list[str] = []
        self.requests: list[tuple[str, str]] = []
        self._server: ThreadingHTTPServer | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(length)) if length else None
                try:
                    status, answer = 200, stand_in.take(self.command, self.path, body)
                except RefusedError as refusal:
                    status, answer = refusal.status, str(refusal)
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_PUT = do_PATCH = do_POST = _answer  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        ThreadingHTTPServer.allow_reuse_address = True
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        """Stop, and lose the table."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        self.version = None

    def take(self, method: str, path: str, body: Any) -> Any:
        self.requests.append((method, path))
        match method, path:
            case "GET", "/table":
                if self.version is None:
                    raise RefusedError(404, "no table yet")
                return {"version": self.version, "site": self.site}
            case "GET", "/replicas":
                return self.replicas
            case "GET", "/measurements":
                if self.version is None:
                    raise RefusedError(404, "no table yet")
                taken, self.measurements = self.measurements, []
                return taken
            case "POST", "/probe":
                self.probed += body["addresses"]
                return None
            case "PUT", "/table":
                self.services, self.deployments, self.clients, self.mapping = {}, {}, {}, {}
                self._add(body)
                assert body["site"] == self.site
                return None
            case "PATCH", "/table":
                if body["from"] != self.version:
                    raise RefusedError(409, f"this is version {self.version}")
                self._remove(body["remove"])
                self._add(body)
                return None
        raise RefusedError(404, path)

    def _remove(self, gone: dict[str, list[Any]]) -> None:
        """Raise RefusedError for entries that do not exist."""
        for prefix in gone["clients"]:
            del self.clients[prefix]
        for one in gone["mapping"]:
            for region in one["regions"]:
                del self.mapping[one["deployment"], region]
        for number in gone["services"]:
            del self.services[number], self.deployments[number]

    def _add(self, body: dict[str, Any]) -> None:
        self.version = body["version"]
        self.services |= {one["id"]: one["name"] for one in body["services"]}
        self.deployments |= {one["id"]: one["deployment"] for one in body["services"]}
        self.details |= {one["name"]: one for one in body["services"]}
        self.clients |= {one["prefix"]: one["region"] for one in body["clients"]}
        self.mapping |= {(one["deployment"], region): one["sites"] for one in body["mapping"] for region in one["regions"]}
        assert len(set(self.services.values())) == len(self.services)
        assert {deployment for deployment, _ in self.mapping} <= set(self.deployments.values())

    def tables(self) -> tuple[Any, ...]:
        return self.services, self.deployments, self.clients, self.mapping

    def sites_for(self, service: int, prefix: str | None = None) -> list[int]:
        """Return the sites as the dispatcher looks them up, for a prefix in the table or for all other clients."""
        deployment = self.deployments[service]
        return self.mapping.get((deployment, self.clients.get(prefix or "", 0)), self.mapping[deployment, 0])

    def replica(self, sid: int, name: str, *, accepting: bool = True, load: float = 0.1) -> None:
        self.replicas = [one for one in self.replicas if one["sid"] != sid] + [
            {
                "sid": sid,
                "services": [name],
                "address": f"2001:db8:{self.site}::{sid}",
                "load": load,
                "weight": 1.0,
                "accepting": accepting,
                "expires_in": 3.0,
            }
        ]

    def measure(self, prefix: str, rtt_us: float, count: int = 1) -> None:
        self.measurements.append({"prefix": prefix, "site": self.site, "rtt_us": rtt_us, "count": count})


@contextmanager
def running(sites: int) -> Iterator[list[FakeDispatcher]]:
    all_ = [FakeDispatcher(site) for site in range(1, sites + 1)]
    for one in all_:
        one.start()
    try:
        yield all_
    finally:
        for one in all_:
            one.stop()
