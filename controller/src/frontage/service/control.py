# SPDX-License-Identifier: Apache-2.0
"""The Unix socket for commands to the running controller: JSON requests and responses, one per line.

{"command": "status"}                  -> {"ok": true, "status": {...}}
{"command": "apply"}                   -> {"ok": true, "role": "primary"}     install the current file
{"command": "route", "address": "..."} -> {"ok": true, "routes": [...]}       where each switch sends packets to an address
any failed request                     -> {"ok": false, "error": "reason"}
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from frontage.config import Config

Request = dict[str, Any]
Answer = dict[str, Any]

_SUN_PATH = 107
"""The longest path of a Unix socket in bytes (sockaddr_un)."""
_MAX_REQUEST_BYTES = 64 * 1024 * 1024


class ControlError(Exception):
    """The running controller is unreachable, or rejects the request."""


def socket_path(config: Config, file: Path) -> Path:
    """Return the path of the control socket for this configuration file. Raises ControlError."""
    if config.control_socket is not None:
        path = config.control_socket
    else:
        file = file.resolve()
        path = file.with_name(f".{file.name}.sock")
    if len(os.fsencode(path)) > _SUN_PATH:
        raise ControlError(f"{path}: a socket's path can have at most {_SUN_PATH} bytes: set control_socket to a shorter path")
    return path


class ControlServer:
    """Serves requests with ``handle``."""

    def __init__(self, path: Path, handle: Callable[[Request], Awaitable[Answer]]):
        self.path = path
        self._handle = handle
        self._server: asyncio.Server | None = None
        self._inode = 0

    @property
    def listening(self) -> bool:
        return self._server is not None

    async def start(self, *, take_over: bool) -> bool:
        """Listen and return True, or return False if another controller listens.

        With ``take_over``, replace the other controller, because commands are for the primary. Raises ControlError.
        """
        if self._server is not None and self._owns_path():
            return True
        if not take_over and await asyncio.to_thread(is_listening, self.path):
            return False
        await self.close()
        self.path.unlink(missing_ok=True)
        try:
            self._server = await asyncio.start_unix_server(self._serve, self.path, limit=_MAX_REQUEST_BYTES)
        except OSError as error:
            raise ControlError(f"{self.path}: cannot listen: {error}: set control_socket to a path in a writable folder") from None
        # Access to the socket allows changing the service.
        self.path.chmod(0o600)
        self._inode = self.path.stat().st_ino
        return True

    async def close(self) -> None:
        if self._server is None:
            return
        self._server.close()
        if self._owns_path():
            self.path.unlink(missing_ok=True)
        self._server = None

    def _owns_path(self) -> bool:
        """Return whether the socket at the path is ours; another controller may have replaced it."""
        with contextlib.suppress(OSError):
            return self.path.stat().st_ino == self._inode
        return False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Close the connection on any failure, so that the client does not wait.
        with contextlib.closing(writer), contextlib.suppress(ConnectionError, ValueError):
            while line := await reader.readline():
                writer.write(json.dumps(await self._answer(line)).encode() + b"\n")
                await writer.drain()

    async def _answer(self, line: bytes) -> Answer:
        try:
            request = json.loads(line)
        except ValueError:
            return {"ok": False, "error": "invalid request: not JSON"}
        if not isinstance(request, dict):
            return {"ok": False, "error": "invalid request: not a JSON object"}
        return await self._handle(request)


def is_listening(path: Path) -> bool:
    """Return whether a controller is running."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(os.fspath(path))
        except OSError:
            return False
        return True


def ask(path: Path, request: Request, seconds: float) -> Answer:
    """Send a request to the running controller and return its response.

    Raises ControlError if there is no response within ``seconds``, or with the reason if the controller rejects the request.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(seconds)
        try:
            connection.connect(os.fspath(path))
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as lines:
                line = lines.readline()
        except TimeoutError:
            raise ControlError(f"no response from the controller within {seconds:g} s: see `frontage status`") from None
        except OSError as error:
            raise ControlError(f"{path}: the controller is unreachable: {error}") from None
    if not line:
        raise ControlError("the controller ended before it responded: see its log")
    answer = json.loads(line)
    if not isinstance(answer, dict) or not answer.get("ok"):
        raise ControlError(str(answer.get("error", "no reason given") if isinstance(answer, dict) else answer))
    return answer
