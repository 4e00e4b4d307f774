# SPDX-License-Identifier: Apache-2.0
"""The HTTP or HTTPS server of the metrics, optionally with client certificates."""

from __future__ import annotations

import logging
import socket
import ssl
import sys
import threading
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.registry import Collector

from frontage.certificates import Certificate, CertificateError, load
from frontage.config.schema import Metrics
from frontage.config.tls import Tls
from frontage.fields import split_listen
from frontage.stamps import Stamp, stamp
from frontage.tls import TlsError, server_context

log = logging.getLogger(__name__)

CLIENT_TIMEOUT = 10.0
"""Timeout of the handshake and of the request, in seconds."""


class Endpoint:
    """Serves a collector's metrics, in its own threads."""

    def __init__(self, metrics: Metrics, collector: Collector):
        """Listen. Raises OSError and TlsError."""
        self.metrics = metrics
        self.certificates = None if metrics.tls is None else ServerCertificates(metrics.tls)
        registry = CollectorRegistry(auto_describe=False)
        registry.register(collector)
        self._server = _Server(split_listen(metrics.address), self.certificates)
        self._server.set_app(make_wsgi_app(registry))
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()
        bound = self._server.server_address
        self.address = str(bound[0]), int(bound[1])

    @property
    def url(self) -> str:
        """The address for Prometheus."""
        return "{}://{}:{}/metrics".format("http" if self.certificates is None else "https", *self.address)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class ServerCertificates:
    """The certificates of a server for new connections. `refresh` reloads replaced files."""

    def __init__(self, settings: Tls):
        """Raises TlsError."""
        self._settings = settings
        self._stamps = self._found()
        self.error: str | None = None
        """The reason why replaced files are not in use."""
        self.context, self.certificate = self._load()

    def refresh(self) -> None:
        """Reload the files if they have changed. If they are invalid, keep the last valid ones."""
        found = self._found()
        if found == self._stamps:
            return
        self._stamps = found
        try:
            self.context, self.certificate = self._load()
            self.error = None
        except TlsError as error:
            self.error = str(error)
            log.warning("%s", error)

    def _load(self) -> tuple[ssl.SSLContext, Certificate]:
        try:
            return server_context(self._settings), load(self._settings.certificate)
        except CertificateError as error:
            raise TlsError(str(error)) from None

    def _found(self) -> list[Stamp | None]:
        files = (self._settings.certificate, self._settings.key, self._settings.clients)
        return [None if file is None else stamp(file) for file in files]


class _Server(ThreadingWSGIServer):
    """A server with a thread per connection, which also runs the handshake, so that a slow client only delays itself."""

    def __init__(self, address: tuple[str, int], certificates: ServerCertificates | None):
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        self.address_family = found[0]
        self._certificates = certificates
        super().__init__((str(found[4][0]), address[1]), _Handler)

    def get_request(self) -> tuple[Any, Any]:
        accepted, address = super().get_request()
        accepted.settimeout(CLIENT_TIMEOUT)
        if self._certificates is not None:
            context = self._certificates.context
            accepted = context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
        return accepted, address

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        log.debug("a client of the metrics, %s: %s", client_address[0], sys.exc_info()[1])


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing."""
