# SPDX-License-Identifier: Apache-2.0
"""An HTTP server with the metrics of an agent, or with what an agent would never send."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TEXT = Path(__file__).with_name("agent_metrics.txt").read_text(encoding="utf-8")
"""The metrics of `frontage-cclb7-quic` with two real servers."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that end a connection early, as they do after a timeout."""


class MetricsServer:
    """Serves the metrics at `/metrics`, and faults at other paths, while its context lasts."""

    def __init__(self, tls: tuple[Path, Path] | None = None) -> None:
        """``tls``: the certificate and its key, for HTTPS."""
        self.text = TEXT
        self.requests: list[str] = []
        """The paths of all requests."""
        self.sent = 0
        """Bytes of the endless response."""
        self.is_released = threading.Event()
        """Ends the responses that hang."""
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.requests.append(self.path)
                owner.answer(self)

            def log_message(self, *_arguments: Any) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._scheme = "http" if tls is None else "https"

    def url(self, path: str = "/metrics") -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}{path}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        match request.path.partition("?")[0]:
            case "/metrics":
                _send(request, self.text.encode())
            case "/slow":
                # Bytes come, but never all of them.
                request.send_response(200)
                request.end_headers()
                while not self.is_released.wait(0.1):
                    request.wfile.write(b"#")
            case "/silent":
                self.is_released.wait()
            case "/large":
                request.send_response(200)
                request.end_headers()
                for _ in range(1600):
                    self.sent += request.wfile.write(b"# 64 KiB\n" * 7282)
            case "/garbage":
                _send(request, bytes(range(256)) * 16)
            case "/truncated":
                _send(request, TEXT.encode()[: len(TEXT) // 2])
            case "/other":
                _send(request, b"# TYPE up gauge\nup 1\n# EOF\n")
            case "/redirect":
                request.send_response(302)
                request.send_header("Location", self.url())
                request.end_headers()
            case _:
                request.send_error(404)

    @contextmanager
    def running(self) -> Iterator[MetricsServer]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield self
        finally:
            self.is_released.set()
            self._server.shutdown()
            self._server.server_close()
            thread.join()


def _send(request: BaseHTTPRequestHandler, body: bytes) -> None:
    request.send_response(200)
    request.send_header("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)
