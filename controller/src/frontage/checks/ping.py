# SPDX-License-Identifier: Apache-2.0
"""Pings of the switch's own addresses (RFC 792, RFC 4443), which show that the checker itself is connected."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import time
from collections.abc import Callable

from frontage.checks.link import Link
from frontage.checks.messages import Ping
from frontage.checksum import internet_checksum

INTERVAL = 0.25
"""Seconds between pings. A failed check causes another one at once."""
MIN_INTERVAL = 0.01
"""Seconds between pings at least."""
TIMEOUT = 0.5
"""Seconds without an answer after which a ping is lost."""
_REQUEST = {4: (socket.IPPROTO_ICMP, 8, 0), 6: (socket.IPPROTO_ICMPV6, 128, 129)}
"""By IP version: the protocol, and the types of requests and replies."""


class Pinger:
    """Pings one address of the switch. Calls ``changed`` whenever a ping was answered or lost."""

    def __init__(self, ping: Ping, changed: Callable[[], None]):
        self.ping = ping
        self.link = Link()
        self.error: str | None = "no ping is answered yet"
        """Why the checker is not connected; None if it is."""
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        version = 6 if ":" in ping.gateway else 4
        self._protocol, self._request, self._reply = _REQUEST[version]
        self._family = socket.AF_INET6 if version == 6 else socket.AF_INET
        self._socket: socket.socket | None = None
        self._sequence = 0
        self._last = 0.0
        self._sent: dict[int, float] = {}
        """Times by sequence number, in order."""
        self._timer = self._loop.call_soon(self._next)

    def close(self) -> None:
        self._timer.cancel()
        self._close()

    def ask(self) -> None:
        """Send a ping now, unless one was sent just before."""
        if time.monotonic() >= self._last + MIN_INTERVAL:
            self._send()

    def _next(self) -> None:
        now = time.monotonic()
        self._expire(now)
        self._send()
        self._timer = self._loop.call_later(INTERVAL, self._next)

    def _expire(self, now: float) -> None:
        lost = [number for number, at in self._sent.items() if at + TIMEOUT <= now]
        for number in lost:
            self.link.lost(self._sent.pop(number))
        if lost:
            self._report("the switch does not answer pings")

    def _send(self) -> None:
        self._last = at = time.monotonic()
        self._sequence = self._sequence + 1 & 0xFFFF
        try:
            if self._socket is None:
                self._socket = self._open()
            message = struct.pack(">BBHHH", self._request, 0, 0, os.getpid() & 0xFFFF, self._sequence)
            if self._family == socket.AF_INET:
                message = message[:2] + struct.pack(">H", internet_checksum(message)) + message[4:]
            self._socket.sendto(message, (self.ping.gateway, 0))
        except PermissionError:
            self._fail(at, "pings need the capability CAP_NET_RAW, or the group of the process in net.ipv4.ping_group_range")
        except OSError as error:
            self._fail(at, f"cannot ping the switch: {error.strerror or error}")
        else:
            self.link.sent(at)
            self._sent[self._sequence] = at

    def _fail(self, at: float, why: str) -> None:
        self._close()
        self.link.sent(at)
        self.link.lost(at)
        self._report(why)

    def _report(self, why: str) -> None:
        self.error = None if self.link.is_up else why
        self._changed()

    def _open(self) -> socket.socket:
        try:
            sock = socket.socket(self._family, socket.SOCK_DGRAM, self._protocol)
        except PermissionError:
            sock = socket.socket(self._family, socket.SOCK_RAW, self._protocol)
        sock.setblocking(False)
        try:
            sock.bind((self.ping.source, 0))
        except OSError:
            sock.close()
            raise
        self._loop.add_reader(sock, self._receive, sock)
        return sock

    def _close(self) -> None:
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None

    def _receive(self, sock: socket.socket) -> None:
        try:
            message, sender = sock.recvfrom(2048)
        except OSError as error:
            # An error that a ping caused, such as an unreachable network.
            self._fail(time.monotonic(), f"cannot ping the switch: {error.strerror or error}")
            return
        if sock.type == socket.SOCK_RAW and self._family == socket.AF_INET:
            message = message[(message[0] & 0xF) * 4 :]
        if len(message) < 8 or message[0] != self._reply or sender[0] != self.ping.gateway:
            return
        number = struct.unpack(">H", message[6:8])[0]
        at = self._sent.pop(number, None)
        # Raw sockets see the answers to other processes, too.
        if at is None or (sock.type == socket.SOCK_RAW and message[4:6] != struct.pack(">H", os.getpid() & 0xFFFF)):
            return
        self.link.answered(at)
        self._report("the switch does not answer pings")
