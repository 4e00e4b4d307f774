# SPDX-License-Identifier: Apache-2.0
"""Reference implementation of docs/syn-flood.md: SYN cookies, written from the specification alone."""

import hashlib
import struct
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

MASK = (1 << 32) - 1
HASH = (1 << 26) - 1
MSS = (536, 1024, 1220, 1300, 1400, 1440, 1460, 8940)
NO_WINDOW_SCALE = 15


@dataclass(frozen=True)
class Options:
    """The options of a SYN. Without timestamps, only the MSS reaches the server."""

    mss: int = 0
    timestamps: bool = True
    window_scale: int = NO_WINDOW_SCALE
    sack: bool = False

    @property
    def mss_code(self) -> int:
        return max(code for code, mss in enumerate(MSS) if code == 0 or mss <= self.mss)

    @property
    def bits(self) -> int:
        """The low five bits of the clock of the answer."""
        return self.window_scale << 1 | self.sack if self.timestamps else 0


def key_words(secret: bytes) -> tuple[int, int]:
    block = hashlib.blake2s(b"syn" + bytes(4), key=secret, person=b"fccookie").digest()
    first, second = struct.unpack_from("<II", block)
    return first, second


def isn(
    secret: bytes, client: object, port: int, client_isn: int, epoch: int, age: int, options: Options, mss_code: int | None = None
) -> int:
    """Return the initial sequence number of the answer to a SYN."""
    address: IPv4Address | IPv6Address = ip_address(str(client))
    head = epoch << 5 | age << 3 | (options.mss_code if mss_code is None else mss_code)
    words = list(struct.unpack(f">{len(address.packed) // 4}I", address.packed))
    words += [port << 16 | head << 10 | options.timestamps << 5 | options.bits, client_isn]
    return head << 26 | half_sip_hash(key_words(secret), words) & HASH


def half_sip_hash(key: tuple[int, int], words: list[int]) -> int:
    v0, v1, v2, v3 = key[0], key[1], 0x6C796765 ^ key[0], 0x74656462 ^ key[1]

    def rotate(value: int, bits: int) -> int:
        return (value << bits | value >> 32 - bits) & MASK

    def rounds(count: int) -> None:
        nonlocal v0, v1, v2, v3
        for _ in range(count):
            v0 = v0 + v1 & MASK
            v1 = rotate(v1, 5) ^ v0
            v0 = rotate(v0, 16)
            v2 = v2 + v3 & MASK
            v3 = rotate(v3, 8) ^ v2
            v0 = v0 + v3 & MASK
            v3 = rotate(v3, 7) ^ v0
            v2 = v2 + v1 & MASK
            v1 = rotate(v1, 13) ^ v2
            v2 = rotate(v2, 16)

    for word in (*words, 4 * len(words) << 24 & MASK):
        v3 ^= word
        rounds(2)
        v0 ^= word
    v2 ^= 0xFF
    rounds(4)
    return v1 ^ v3
