# SPDX-License-Identifier: Apache-2.0
"""The CloudCookie: quantisation, the sealed static form for TCP and IPv6, and QUIC connection ids.

The specification is ``docs/cookie.md``. ``docs/cookie-vectors.json`` has the test vectors that this module shares with the P4
program, the eBPF program and the Rust crate. `frontage.state.blocks.masking` installs the derived tables in the switch.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address

SECRET_BYTES_MIN = 16
SECRET_BYTES_MAX = 32

_PERSON = b"fccookie"
_BLOCK_BYTES = 32
_TCP_BLOCKS = 32
_IP6_BLOCKS = 512
_ROUNDS = 4

SID_TCP_BITS = 12
SID_IP6_BITS = 16
_CHECK_TCP_BITS = 3
IP6_VERSION = 1
CID_VERSION = 2

CID_BYTES = 12
CID_NONCE_MAX = (1 << 24) - 1
CID_PLAIN = 2
"""The QUIC-LB configuration id of the plaintext form; 0 and 1 are the epochs of the sealed form."""


@dataclass(frozen=True, slots=True)
class Quantiser:
    """An unsigned floating-point code of ``width`` bits, of which ``mantissa`` bits are mantissa."""

    width: int
    mantissa: int

    @property
    def max_code(self) -> int:
        return (1 << self.width) - 1

    def encode(self, value: int) -> int:
        """Return the code of ``value``: exact below ``2**(mantissa + 1)``, clipped to the largest code."""
        if value < 0:
            raise ValueError(f"cannot quantise {value}: values are unsigned")
        if value < 1 << self.mantissa:
            return value
        exponent = value.bit_length() - 1 - self.mantissa
        fraction = (value >> exponent) & ((1 << self.mantissa) - 1)
        return min(((exponent + 1) << self.mantissa) + fraction, self.max_code)

    def decode(self, code: int) -> int:
        """Return the smallest value with this ``code``."""
        if not 0 <= code <= self.max_code:
            raise ValueError(f"code {code} does not fit in {self.width} bits")
        if code < 1 << self.mantissa:
            return code
        exponent = (code >> self.mantissa) - 1
        return ((1 << self.mantissa) + (code & ((1 << self.mantissa) - 1))) << exponent


TCP_LOAD = Quantiser(width=5, mantissa=2)
"""N_AF and N_FF in the TCP timestamp, in flows."""
TCP_RPT = Quantiser(width=6, mantissa=2)
"""RPT in the TCP timestamp, in units of 8 microseconds."""
IP6_SIGNAL = Quantiser(width=8, mantissa=3)
"""N_AF, N_FF and RPT in the IPv6 interface id."""
RPT_UNIT_US = 8
"""The unit of RPT in microseconds."""


def tweak(client: IPv4Address | IPv6Address, vip: IPv4Address | IPv6Address, client_port: int, vip_port: int) -> bytes:
    """Return the four tweak bytes that bind a TCP code to its connection, t[0] first."""
    message = client.packed + vip.packed + struct.pack(">HH", client_port, vip_port)
    return struct.pack(">I", zlib.crc32(message))


def _stream(secret: bytes, carrier: bytes, blocks: int) -> bytes:
    return b"".join(
        hashlib.blake2s(carrier + struct.pack(">I", n), digest_size=_BLOCK_BYTES, key=secret, person=_PERSON).digest()
        for n in range(blocks)
    )


@dataclass(frozen=True)
class CookieKey:
    """A key: its id, larger than those of older keys, and the secret from which the tables are derived."""

    id: int
    secret: bytes

    def __post_init__(self) -> None:
        if not SECRET_BYTES_MIN <= len(self.secret) <= SECRET_BYTES_MAX:
            raise ValueError(f"invalid secret: {len(self.secret)} bytes long: use {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes")

    def __repr__(self) -> str:
        # Never print a secret, not even in a traceback.
        return f"CookieKey(id={self.id})"

    @property
    def epoch(self) -> int:
        """The bit ``E`` of every code sealed by this key."""
        return self.id & 1

    @cached_property
    def tcp_tables(self) -> tuple[bytes, bytes, bytes, bytes]:
        """S[0..3]: for each round, the value of the round function for each of the 256 inputs."""
        stream = _stream(self.secret, b"tcp", _TCP_BLOCKS)
        s0, s1, s2, s3 = (stream[256 * i : 256 * (i + 1)] for i in range(_ROUNDS))
        return s0, s1, s2, s3

    @cached_property
    def ip6_tables(self) -> tuple[tuple[Sequence[int], ...], ...]:
        """T[i][j][x]: round ``i``, byte position ``j`` (0 the most significant), byte ``x``."""
        words = struct.unpack(f">{_ROUNDS * 4 * 256}I", _stream(self.secret, b"ip6", _IP6_BLOCKS))
        return tuple(tuple(words[256 * (j + 4 * i) : 256 * (j + 4 * i + 1)] for j in range(4)) for i in range(_ROUNDS))

    def seal_tcp(self, sid: int, connection: bytes) -> int:
        """Return the 16-bit static code (epoch and 15 sealed bits) of a server for the connection with this tweak."""
        if not 0 <= sid < 1 << SID_TCP_BITS:
            raise ValueError(f"server id {sid} does not fit in {SID_TCP_BITS} bits")
        s, t = self.tcp_tables, connection
        plain = sid << _CHECK_TCP_BITS
        left, right = plain >> 7, plain & 0x7F
        left ^= s[0][right ^ t[0]]
        right ^= s[1][left ^ t[1]] & 0x7F
        left ^= s[2][right ^ t[2]]
        right ^= s[3][left ^ t[3]] & 0x7F
        return self.epoch << 15 | left << 7 | right

    def open_tcp(self, code: int, connection: bytes) -> int | None:
        """Return the server id in a static code, or None if this key did not seal it for this connection."""
        if code >> 15 != self.epoch:
            return None
        s, t = self.tcp_tables, connection
        left, right = code >> 7 & 0xFF, code & 0x7F
        right ^= s[3][left ^ t[3]] & 0x7F
        left ^= s[2][right ^ t[2]]
        right ^= s[1][left ^ t[1]] & 0x7F
        left ^= s[0][right ^ t[0]]
        plain = left << 7 | right
        return None if plain & 7 else plain >> _CHECK_TCP_BITS

    @cached_property
    def syn_key(self) -> tuple[int, int]:
        """The two words of the key of SYN cookies (docs/syn-flood.md)."""
        first, second = struct.unpack_from("<II", _stream(self.secret, b"syn", 1))
        return first, second

    def _round_ip6(self, i: int, y: int) -> int:
        t = self.ip6_tables[i]
        return t[0][y >> 24] ^ t[1][y >> 16 & 255] ^ t[2][y >> 8 & 255] ^ t[3][y & 255]

    def _seal_word(self, head: int, plain: int) -> int:
        left, right = plain >> 28, plain & 0xFFFFFFF
        left ^= self._round_ip6(0, right)
        right ^= self._round_ip6(1, left) & 0xFFFFFFF
        left ^= self._round_ip6(2, right)
        right ^= self._round_ip6(3, left) & 0xFFFFFFF
        return head << 60 | left << 28 | right

    def _open_word(self, word: int) -> int:
        left, right = word >> 28 & 0xFFFFFFFF, word & 0xFFFFFFF
        right ^= self._round_ip6(3, left) & 0xFFFFFFF
        left ^= self._round_ip6(2, right)
        right ^= self._round_ip6(1, left) & 0xFFFFFFF
        left ^= self._round_ip6(0, right)
        return left << 28 | right

    def seal_ip6(self, cookie: Ip6Cookie) -> int:
        """Return the 64-bit interface id that carries ``cookie``, with the epoch of this key."""
        return self._seal_word(IP6_VERSION << 2 | cookie.dynamic << 1 | self.epoch, cookie.plain())

    def open_ip6(self, interface_id: int) -> Ip6Cookie | None:
        """Return the cookie in an interface id, or None if this key did not seal it."""
        head = interface_id >> 60
        if head >> 2 != IP6_VERSION or head & 1 != self.epoch:
            return None
        return Ip6Cookie.from_plain(self._open_word(interface_id), dynamic=bool(head >> 1 & 1))

    def seal_cid(self, sid: int, nonce: int, random: bytes) -> bytes:
        """Return the 12 bytes of a sealed connection id of a server. Its last three bytes are ``random``."""
        if not 0 <= sid < 1 << SID_IP6_BITS:
            raise ValueError(f"server id {sid} does not fit in {SID_IP6_BITS} bits")
        if not 1 <= nonce <= CID_NONCE_MAX:
            raise ValueError(f"nonce {nonce} is not between 1 and {CID_NONCE_MAX}")
        word = self._seal_word(CID_VERSION << 2 | self.epoch, sid << 44 | nonce << 20)
        return struct.pack(">BQ", _cid_first_octet(self.epoch), word) + random

    def open_cid(self, cid: bytes) -> int | None:
        """Return the server id in a connection id that has the plaintext form or was sealed by this key, otherwise None."""
        if len(cid) != CID_BYTES:
            return None
        if cid[0] == _cid_first_octet(CID_PLAIN):
            return int.from_bytes(cid[1:3], "big")
        word = int.from_bytes(cid[1:9], "big")
        if cid[0] != _cid_first_octet(self.epoch) or word >> 60 != CID_VERSION << 2 | self.epoch:
            return None
        plain = self._open_word(word)
        return None if plain & 0xFFFFF or not plain >> 20 & CID_NONCE_MAX else plain >> 44


def plain_cid(sid: int, nonce: bytes) -> bytes:
    """Return the plaintext form of a QUIC-LB connection id, with a nonce of nine bytes."""
    return struct.pack(">BH", _cid_first_octet(CID_PLAIN), sid) + nonce


def _cid_first_octet(config: int) -> int:
    # The length does not count this octet.
    return config << 5 | CID_BYTES - 1


@dataclass(frozen=True, slots=True)
class Ip6Cookie:
    """The fields of an IPv6 interface id. Signals are codes of ``IP6_SIGNAL``, all zero in the static form."""

    sid: int
    rpt: int = 0
    n_af: int = 0
    n_ff: int = 0
    expects_static: bool = False
    """The bit ``X``, in the dynamic form only: the client expects packets from the address of the static cookie, not from the VIP."""
    dynamic: bool = False

    def plain(self) -> int:
        """The 60 bits before sealing."""
        if not 0 <= self.sid < 1 << SID_IP6_BITS:
            raise ValueError(f"server id {self.sid} does not fit in {SID_IP6_BITS} bits")
        for name, code in (("rpt", self.rpt), ("n_af", self.n_af), ("n_ff", self.n_ff)):
            if not 0 <= code <= (IP6_SIGNAL.max_code if self.dynamic else 0):
                raise ValueError(f"{name} code {code} does not fit ({'8 bits' if self.dynamic else 'the static form has none'})")
        if self.expects_static and not self.dynamic:
            raise ValueError("the static form has no X")
        return self.sid << 44 | self.rpt << 36 | self.n_af << 28 | self.n_ff << 20 | self.expects_static << 19

    @classmethod
    def from_plain(cls, plain: int, *, dynamic: bool) -> Ip6Cookie | None:
        """Return the fields of 60 opened bits, or None if the check bits are not zero."""
        if plain & (0x7FFFF if dynamic else 0xFFFFFFFFFFF):
            return None
        return cls(
            sid=plain >> 44,
            rpt=plain >> 36 & 0xFF,
            n_af=plain >> 28 & 0xFF,
            n_ff=plain >> 20 & 0xFF,
            expects_static=bool(plain >> 19 & 1),
            dynamic=dynamic,
        )
