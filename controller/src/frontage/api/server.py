# SPDX-License-Identifier: Apache-2.0
"""The HTTP server of the API, on the control socket and on a TCP address."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from frontage.certificates import parse

_SUN_PATH = 107
"""The longest path of a Unix socket in bytes (sockaddr_un)."""
# The controller logs starts and stops itself.
logging.getLogger("uvicorn.error").setLevel(logging.WARNING)

_BACKLOG = 1024
_SHUTDOWN_SECONDS = 2
_CREDENTIALS = struct.Struct("3i")
"""The struct ucred of Linux: pid, uid, gid."""


class ListenError(Exception):
    """An address cannot be used; the message says why and what to do."""


class _LocalProtocol(H11Protocol):
    """HTTP over a Unix socket. The address of a client is its uid, and the port its process id."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        found = transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, uid, _ = _CREDENTIALS.unpack(found)
        self.client = str(uid), pid


class _TcpProtocol(H11Protocol):
    """HTTP over TCP. Requests carry the names in the client's certificate, if it has one."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        found = transport.get_extra_info("ssl_object")
        der = None if found is None else found.getpeercert(binary_form=True)
        if der is not None:
            self.app_state = self.app_state | {"certificate_names": parse(der).names}


class _Server(uvicorn.Server):
    """A server in a program that handles signals itself."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Listener:
    """Serves an application on a socket."""

    def __init__(self, app: FastAPI, bound: socket.socket, tls: ssl.SSLContext | None = None, *, is_local: bool = False):
        config = uvicorn.Config(
            app,
            http=_LocalProtocol if is_local else _TcpProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
        config.load()
        config.ssl = tls
        self._server = _Server(config)
        self._socket = bound
        self._task = asyncio.create_task(self._server.serve([bound]))

    @property
    def address(self) -> tuple[str, int]:
        """The host and port."""
        found = self._socket.getsockname()
        return str(found[0]), int(found[1])

    async def close(self) -> None:
        """Finish requests in progress, and stop."""
        self._server.should_exit = True
        await asyncio.gather(self._task, return_exceptions=True)
        self._socket.close()


def bind_unix(path: Path) -> socket.socket:
    """Return a socket at a path that only its owner can use, and replace an existing one. Raises ListenError."""
    if len(os.fsencode(path)) > _SUN_PATH:
        raise ListenError(f"{path}: a socket's path can have at most {_SUN_PATH} bytes: set control_socket to a shorter path")
    bound = socket.socket(socket.AF_UNIX)
    try:
        path.unlink(missing_ok=True)
        # Other users cannot connect between bind and chmod: the socket does not listen yet.
        bound.bind(os.fspath(path))
        path.chmod(0o600)
        bound.listen(_BACKLOG)
    except OSError as error:
        bound.close()
        raise ListenError(f"{path}: cannot listen: {error}: set control_socket to a path in a writable folder") from None
    return bound


def bind_tcp(host: str, port: int) -> socket.socket:
    """Return a socket at a TCP address. Raises ListenError."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG, reuse_port=False)
    except OSError as error:
        raise ListenError(f"api.listen {host}:{port}: cannot listen: {error}: choose another address") from None
