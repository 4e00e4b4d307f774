# SPDX-License-Identifier: Apache-2.0
"""Reference implementation of docs/cookie.md: cookies and connection ids, written from the specification alone."""

import hashlib
import json
import zlib
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from pathlib import Path
from typing import Any

VECTORS = json.loads((Path(__file__).resolve().parents[3] / "docs" / "cookie-vectors.json").read_text())


def connection_bytes(client: object, vip: object, client_port: int, vip_port: int) -> bytes:
    addresses = ip_address(str(client)).packed + ip_address(str(vip)).packed
    return addresses + client_port.to_bytes(2, "big") + vip_port.to_bytes(2, "big")


def connection_hash(client: object, vip: object, client_port: int, vip_port: int) -> int:
    return zlib.crc32(connection_bytes(client, vip, client_port, vip_port))


def crc16(data: bytes) -> int:
    """Return the CRC-16/ARC, the index into the connection table (`HashAlgorithm.crc16` of v1model)."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc


@dataclass(frozen=True)
class Key:
    id: int
    secret: bytes

    @property
    def epoch(self) -> int:
        return self.id & 1

    @cached_property
    def tables(self) -> list[bytes]:
        stream = b"".join(
            hashlib.blake2s(b"tcp" + n.to_bytes(4, "big"), key=self.secret, person=b"fccookie").digest() for n in range(32)
        )
        return [stream[256 * i : 256 * (i + 1)] for i in range(4)]

    def _rounds(self, left: int, right: int, tweak: int, order: tuple[int, ...]) -> tuple[int, int]:
        t = tweak.to_bytes(4, "big")
        for i in order:
            if i % 2 == 0:
                left ^= self.tables[i][right ^ t[i]]
            else:
                right ^= self.tables[i][left ^ t[i]] & 0x7F
        return left, right

    def seal(self, sid: int, tweak: int) -> int:
        left, right = self._rounds(sid >> 4, (sid & 15) << 3, tweak, (0, 1, 2, 3))
        return self.epoch << 15 | left << 7 | right

    def open(self, code: int, tweak: int) -> int | None:
        """Return the SID, or None if this key did not seal the code for this connection."""
        left, right = self._rounds(code >> 7 & 0xFF, code & 0x7F, tweak, (3, 2, 1, 0))
        if code >> 15 != self.epoch or right & 7:
            return None
        return left << 4 | right >> 3

    @cached_property
    def words(self) -> list[list[list[int]]]:
        """Tables T[i][j][x] of the IPv6 cipher."""
        stream = b"".join(
            hashlib.blake2s(b"ip6" + n.to_bytes(4, "big"), key=self.secret, person=b"fccookie").digest() for n in range(512)
        )

        def word(at: int) -> int:
            return int.from_bytes(stream[4 * at : 4 * at + 4], "big")

        return [[[word(x + 256 * (j + 4 * i)) for x in range(256)] for j in range(4)] for i in range(4)]

    def seal6(self, head: int, plain: int) -> int:
        """Return 64 bits: `head` (ver and F), E, and the 60 sealed bits of `plain`."""
        left, right = plain >> 28, plain & 0xFFFFFFF
        for i in range(4):
            y = right if i % 2 == 0 else left
            mixed = 0
            for j, byte in enumerate(y.to_bytes(4, "big")):
                mixed ^= self.words[i][j][byte]
            if i % 2 == 0:
                left ^= mixed
            else:
                right ^= mixed & 0xFFFFFFF
        return (head << 1 | self.epoch) << 60 | left << 28 | right

    def static6(self, sid: int) -> int:
        """Return the interface id of a server's cookie address."""
        return self.seal6(0b010, sid << 44)

    def dynamic6(self, sid: int, rpt: int = 0, n_af: int = 0, n_ff: int = 0, x: int = 0) -> int:
        """Return the interface id that a server sends from, for quantisation codes."""
        return self.seal6(0b011, sid << 44 | rpt << 36 | n_af << 28 | n_ff << 20 | x << 19)

    def cid(self, sid: int, nonce: int, random: bytes = bytes(3)) -> bytes:
        """Return a sealed connection id."""
        return bytes([self.epoch << 5 | 11]) + self.seal6(0b100, sid << 44 | nonce << 20).to_bytes(8, "big") + random

    def static_tsval(self, sid: int, tweak: int, coarse_clock: int) -> int:
        return (coarse_clock + self.id & 0xFFFF) << 16 | self.seal(sid, tweak)


def plain_cid(sid: int, nonce: bytes = bytes(9)) -> bytes:
    """Return a connection id in QUIC-LB's plaintext form."""
    return bytes([2 << 5 | 11]) + sid.to_bytes(2, "big") + nonce


def decode(code: int, mantissa: int = 2) -> int:
    """Return the value at the lower end of a quantisation code's interval."""
    if code < 1 << mantissa:
        return code
    exponent = (code >> mantissa) - 1
    return ((1 << mantissa) + (code & (1 << mantissa) - 1)) << exponent


def dynamic_tsval(coarse_clock: int, rpt: int, n_af: int, n_ff: int) -> int:
    """Return TSval as a server writes it, for quantisation codes."""
    return coarse_clock << 16 | rpt << 10 | n_af << 5 | n_ff


def key_of(vector: dict[str, Any]) -> Key:
    return Key(vector["key_id"], bytes.fromhex(vector["secret"]))
