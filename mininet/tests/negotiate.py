"""Asks servers for QUIC of a version that there is not: `negotiate.py HOST PORT`. What they say comes out as JSON, one
list of versions for each length of connection id that was tried.
"""

import json
import socket
import struct
import sys

LENGTHS = (0, 8, 12, 20)
SOURCE = b"client"
UNKNOWN = bytes.fromhex("1a2a3a4a")
"""Reserved so that servers must refuse it (RFC 9000, section 15)."""
PATIENCE = 5.0


def ask(host: str, port: int, length: int) -> list[int]:
    """The versions of the Version Negotiation that answers (RFC 8999, section 6)."""
    target = bytes(range(0x40, 0x40 + length))
    ids = bytes([length]) + target + bytes([len(SOURCE)]) + SOURCE
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(PATIENCE)
        # Only what comes from there is received.
        sock.connect((host, port))
        sock.send((b"\xc0" + UNKNOWN + ids).ljust(1200, b"\0"))
        answer = sock.recv(2000)
    head = bytes(4) + bytes([len(SOURCE)]) + SOURCE + bytes([length]) + target
    assert answer[0] & 0x80 and answer[1 : 1 + len(head)] == head, answer.hex()
    return [version for (version,) in struct.iter_unpack(">I", answer[1 + len(head) :])]


if __name__ == "__main__":
    print(json.dumps([ask(sys.argv[1], int(sys.argv[2]), length) for length in LENGTHS]))
