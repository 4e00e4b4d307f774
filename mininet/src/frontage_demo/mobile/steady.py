# SPDX-License-Identifier: Apache-2.0
"""A steady stream over TCP, and its receiver, which notes when bytes arrive.

    steady.py source PORT                 for each connection, sends a block every 2 ms
    steady.py sink PORT OUT               connects; writes the monotonic time of each arrival to OUT on SIGTERM
    steady.py first PORT                  prints the seconds from connecting to the first byte

The stream is a counter, so the receiver detects every lost, repeated or altered byte.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import struct
import sys
import threading
import time
from pathlib import Path
from types import FrameType

INTERVAL = 0.002
"""Seconds between blocks."""
WORDS = 128
"""Numbers of 8 bytes in a block."""


def block(number: int) -> bytes:
    """Return a block of the stream."""
    return struct.pack(f">{WORDS}Q", *range(number * WORDS, (number + 1) * WORDS))


def source(port: int) -> None:
    """Serve the stream until the process ends."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        while True:
            threading.Thread(target=_send, args=(listener.accept()[0],), daemon=True).start()


def _send(connection: socket.socket) -> None:
    began, number = time.monotonic(), 0
    with contextlib.suppress(OSError), connection:
        while True:
            connection.sendall(block(number))
            number += 1
            time.sleep(max(0.0, began + number * INTERVAL - time.monotonic()))


class _Stopped(Exception):
    """The process received SIGTERM."""


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise _Stopped


def sink(port: int, out: Path) -> None:
    """Receive the stream until SIGTERM. Raises ValueError if it is damaged, and OSError if the connection fails."""
    arrivals: list[float] = []
    signal.signal(signal.SIGTERM, _stop)
    with contextlib.suppress(_Stopped):
        _receive(port, arrivals)
    out.write_text("\n".join(f"{arrival:.6f}" for arrival in arrivals))


def _receive(port: int, arrivals: list[float]) -> None:
    pending, number = b"", 0
    with socket.create_connection(("127.0.0.1", port)) as connection:
        while True:
            received = connection.recv(1 << 16)
            if not received:
                raise ValueError("the stream ended")
            arrivals.append(time.monotonic())
            pending += received
            while len(pending) >= 8 * WORDS:
                if pending[: 8 * WORDS] != block(number):
                    raise ValueError(f"block {number} is damaged")
                pending, number = pending[8 * WORDS :], number + 1


def first(port: int) -> float:
    """Return the seconds from connecting to the first byte."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.recv(1)
        return time.monotonic() - began


if __name__ == "__main__":
    if sys.argv[1] == "source":
        source(int(sys.argv[2]))
    elif sys.argv[1] == "first":
        print(first(int(sys.argv[2])))
    else:
        sink(int(sys.argv[2]), Path(sys.argv[3]))
