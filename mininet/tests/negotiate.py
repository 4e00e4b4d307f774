# SPDX-License-Identifier: Apache-2.0
"""Sends packets of an unknown QUIC version: `negotiate.py HOST PORT`.

Prints the servers' answers as JSON: a list of versions for each length of connection ID.
"""

import json
import socket
import struct
import sys

LENGTHS = (0, 8, 12, 20)
SOURCE = b"client"
UNKNOWN = bytes.fromhex("1a2a3a4a")
"""A reserved version, which servers must reject (RFC 9000, section 15)."""
RESPONSE_TIMEOUT = 5.0


def query(host: str, port: int, length: int) -> list[int]:
    """Return the versions of the Version Negotiation packet (RFC 8999, section 6)."""
    target = bytes(range(0x40, 0x40 + length))
    ids = bytes([length]) + target + bytes([len(SOURCE)]) + SOURCE
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(RESPONSE_TIMEOUT)
        # A connected socket receives only from the server.
        sock.connect((host, port))
        sock.send((b"\xc0" + UNKNOWN + ids).ljust(1200, b"\0"))
        answer = sock.recv(2000)
    head = bytes(4) + bytes([len(SOURCE)]) + SOURCE + bytes([length]) + target
    assert answer[0] & 0x80 and answer[1 : 1 + len(head)] == head, answer.hex()
    return [version for (version,) in struct.iter_unpack(">I", answer[1 + len(head) :])]


if __name__ == "__main__":
    print(json.dumps([query(sys.argv[1], int(sys.argv[2]), length) for length in LENGTHS]))
