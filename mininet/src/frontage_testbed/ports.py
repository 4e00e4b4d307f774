# SPDX-License-Identifier: Apache-2.0
"""TCP ports for servers that may be restarted while other processes use the machine."""

import fcntl
import random
import socket
import tempfile
from pathlib import Path
from typing import IO

FIRST_PORT = 10_000
RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""The ports that the kernel gives to connections. A server that is down could lose such a port to any of them."""

_reserved: list[IO[bytes]] = []


def reserve_ports(count: int) -> list[int]:
    """Return free TCP ports outside the kernel's range, which no other caller gets while this process lives.

    Raises `OSError` if there are not enough.
    """
    folder = Path(tempfile.gettempdir()) / "frontage-ports"
    folder.mkdir(exist_ok=True)
    last = min(int(RANGE.read_text().split()[0]), 1 << 16)
    ports: list[int] = []
    # A random order keeps processes that start together apart.
    for port in random.SystemRandom().sample(range(FIRST_PORT, last), last - FIRST_PORT):
        if len(ports) == count:
            return ports
        if _reserve(folder / str(port)) and _is_free(port):
            ports.append(port)
    raise OSError(f"fewer than {count} free ports between {FIRST_PORT} and {last}: end processes that listen there")


def _reserve(file: Path) -> bool:
    lock = file.open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return False
    _reserved.append(lock)
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
