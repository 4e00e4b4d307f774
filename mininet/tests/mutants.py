# SPDX-License-Identifier: Apache-2.0
"""Sends clients' packets again, damaged: `mutants.py INTERFACE CAPTURE PACKETS PACKETS_PER_SECOND SEED`.

CAPTURE is a pcap of QUIC clients' frames on that interface. Addresses stay, and so do half of the ports. Lengths and
checksums of IP and UDP are right, so only QUIC can detect the damage: flipped bits, truncated or extended packets, another
version, connection IDs of invalid lengths, or noise.
"""

import random
import socket
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

from frontage_testbed.capture import frames

LARGEST = 1452
"""Maximum UDP payload over IPv6 and Ethernet."""
AT_ONCE = 50
"""Packets between two readings of the clock."""


def flipped(payload: bytes, rng: random.Random) -> bytes:
    bits = int.from_bytes(payload, "big")
    # Most flips hit the headers.
    for _ in range(rng.randrange(1, 9)):
        bits ^= 1 << 8 * len(payload) - 1 - min(rng.randrange(8 * len(payload)), int(rng.expovariate(1 / 200)))
    return bits.to_bytes(len(payload), "big")


def cut(payload: bytes, rng: random.Random) -> bytes:
    return payload[: rng.randrange(min(len(payload), rng.choice((30, 2000))))]


def lengthened(payload: bytes, rng: random.Random) -> bytes:
    return (payload + rng.randbytes(rng.randrange(1, 200)))[:LARGEST]


def with_other_version(payload: bytes, rng: random.Random) -> bytes:
    return bytes([payload[0] | 0x80]) + rng.choice((rng.randbytes(4), bytes(4))) + payload[5:]


def with_other_id_length(payload: bytes, rng: random.Random) -> bytes:
    """Return a first packet of version 1 with that ID length and a random rest."""
    length = rng.choice((0, 1, 7, 8, 12, 20, 21, 255))
    return b"\xc3\0\0\0\1" + bytes([length]) + payload[1:21] + rng.randbytes(1200 - 26)


def noise(payload: bytes, rng: random.Random) -> bytes:
    return rng.randbytes(len(payload))


KINDS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    flipped,
    cut,
    lengthened,
    with_other_version,
    with_other_id_length,
    noise,
)


def checksum(data: bytes) -> bytes:
    return struct.pack(">H", 0xFFFF - int.from_bytes(data + bytes(len(data) % 2), "big") % 0xFFFF)


def payload_at(frame: bytes) -> int:
    return (34 if frame[12:14] == b"\x08\x00" else 54) + 8


def frame(original: bytes, port: bytes | None, damage: Callable[[bytes], bytes]) -> bytes:
    """Return a frame with a damaged UDP payload, and from another port if one is given."""
    version4 = original[12:14] == b"\x08\x00"
    l4 = payload_at(original) - 8
    payload = damage(original[payload_at(original) :])
    length = 8 + len(payload)
    addresses = original[26:34] if version4 else original[22:54]
    udp = (port or original[l4 : l4 + 2]) + original[l4 + 2 : l4 + 4] + struct.pack(">H", length)
    udp += checksum(addresses + struct.pack(">IHH", length, 0, 17) + udp + b"\0\0" + payload) + payload
    if version4:
        head = original[14:16] + struct.pack(">H", 20 + length) + original[18:24] + b"\0\0" + original[26:34]
        return original[:14] + head[:10] + checksum(head) + head[12:] + udp
    return original[:18] + struct.pack(">H", length) + original[20:54] + udp


def main(interface: str, capture: str, packets: str, rate: str, seed: str) -> None:
    rng, originals = random.Random(seed), list(frames(Path(capture)))
    # Half of the packets have long headers (RFC 9000, section 17.2), however rare those are in the capture.
    long = [o for o in originals if o[payload_at(o)] & 0x80]
    short = [o for o in originals if not o[payload_at(o)] & 0x80]
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    out.bind((interface, 0))
    begun = time.monotonic()
    for n in range(int(packets)):
        if n % AT_ONCE == 0:
            time.sleep(max(0.0, begun + n / int(rate) - time.monotonic()))
        kind, port = KINDS[n % len(KINDS)], rng.randbytes(2) if n // len(KINDS) % 2 else None
        out.send(frame(rng.choice(rng.choice((long, short))), port, lambda payload, kind=kind: kind(payload, rng)))


if __name__ == "__main__":
    main(*sys.argv[1:])
