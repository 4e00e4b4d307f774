# SPDX-License-Identifier: Apache-2.0
"""TCP checks: the server accepts a connection. One epoll set holds all connections, because tasks would cost most of a CPU."""

from __future__ import annotations

import asyncio
import errno
import select
import socket
from collections import deque
from collections.abc import Callable

from frontage.checks.failures import CheckerFailedError, CheckFailedError, of_errno, of_timeout
from frontage.checks.messages import Target
from frontage.checks.sockets import tcp_socket

Done = Callable[[Target, float, Exception | None], None]
"""Takes the target, the begin of the check, and its error."""


class TcpChecks:
    """The TCP checks in flight."""

    def __init__(self, loop: asyncio.AbstractEventLoop, done: Done):
        self._done = done
        self._epoll = select.epoll()
        self._open: dict[int, tuple[socket.socket, Target, float]] = {}
        """By file descriptor: socket, target, begin."""
        self._deadlines: dict[float, deque[tuple[float, int, socket.socket]]] = {}
        """By timeout, each in order: deadline, file descriptor, socket."""
        loop.add_reader(self._epoll.fileno(), self._on_ready)

    def start(self, target: Target, turn: int, now: float) -> None:
        try:
            sock = tcp_socket(target, turn)
        except (CheckFailedError, CheckerFailedError) as error:
            self._done(target, now, error)
            return
        code = sock.connect_ex((target.address, target.port))
        if code not in (0, errno.EINPROGRESS):
            sock.close()
            self._done(target, now, of_errno(code))
            return
        fd = sock.fileno()
        self._open[fd] = sock, target, now
        self._epoll.register(fd, select.EPOLLOUT)
        self._deadlines.setdefault(target.timeout, deque()).append((now + target.timeout, fd, sock))

    def expire(self, now: float) -> None:
        """End the checks whose time is over."""
        for waiting in self._deadlines.values():
            while waiting and (waiting[0][0] <= now or waiting[0][2].fileno() < 0):
                _, fd, sock = waiting.popleft()
                if sock.fileno() == fd:
                    _, target, begin = self._open.pop(fd)
                    sock.close()
                    self._done(target, begin, of_timeout(target.timeout))

    def _on_ready(self) -> None:
        for fd, _ in self._epoll.poll(0):
            sock, target, begin = self._open.pop(fd)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            sock.close()
            self._done(target, begin, of_errno(code) if code else None)
