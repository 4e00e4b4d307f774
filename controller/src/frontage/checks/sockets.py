# SPDX-License-Identifier: Apache-2.0
"""Sockets of checks. The source port names the server: ``p4src/control/checker.p4`` reads the SID from its low 12 bits."""

from __future__ import annotations

import socket
import struct

from frontage.checks.failures import of_errno
from frontage.checks.messages import Target

TURNS = 8
"""Source ports of each server. Checks take turns, so that a late packet of one check does not reach the next."""

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def source_port(sid: int, turn: int) -> int:
    return 0x8000 | turn % TURNS << 12 | sid


def family(target: Target) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in target.address else socket.AF_INET


def tcp_socket(target: Target, turn: int) -> socket.socket:
    """Return a socket that is bound to the source port of the server. Raises CheckerFailedError.

    Closing it resets the connection, because a connection in TIME_WAIT would block the port for a minute.
    """
    try:
        sock = socket.socket(family(target), socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    except OSError as error:
        raise of_errno(error.errno or 0) from None
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        sock.bind((target.source, source_port(target.sid, turn)))
    except OSError as error:
        sock.close()
        raise of_errno(error.errno or 0) from None
    return sock
