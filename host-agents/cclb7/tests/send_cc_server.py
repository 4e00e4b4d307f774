# SPDX-License-Identifier: Apache-2.0
"""A server that reports its responses through libfrontage_cc, as any server may: `send_cc_server.py LIBRARY PORT`.

A request is a line `KIND BYTES`; the response is that many bytes, reported in the way that KIND names.
"""

import ctypes
import socket
import sys
import threading

CHUNK = b"x" * 65536


class SendCC:
    """The library's functions, with their types."""

    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path, use_errno=True)
        self.send_cc = library.send_cc
        self.send_cc.argtypes = [
            ctypes.c_int,
            ctypes.c_char_p,
            ctypes.c_size_t,
            ctypes.c_int,
            ctypes.c_uint64,
        ]
        self.send_cc.restype = ctypes.c_ssize_t
        for name in ("cc_report", "cc_report_begin", "cc_report_end"):
            getattr(library, name).argtypes = [ctypes.c_int, ctypes.c_uint64]
        self.library = library


def send_all(connection: socket.socket, length: int) -> None:
    while length > 0:
        length -= connection.send(CHUNK[:length])


def respond(cc: SendCC, connection: socket.socket, kind: str, length: int) -> None:
    fd = connection.fileno()
    if kind == "sized":
        first = cc.send_cc(fd, CHUNK, min(length, len(CHUNK)), 0, length)
        send_all(connection, length - max(first, 0))
    elif kind == "estimated":
        cc.library.cc_report_begin(fd, length + 1000)
        send_all(connection, length)
        cc.library.cc_report_end(fd, 1000)
    elif kind == "unknown":
        cc.library.cc_report_unknown(fd)
        send_all(connection, length)
        cc.library.cc_report_unknown_end(fd)
    else:
        raise ValueError(f"unknown kind of response: {kind}")


def serve(cc: SendCC, connection: socket.socket) -> None:
    with connection, connection.makefile("r") as requests:
        try:
            for line in requests:
                kind, length = line.split()
                respond(cc, connection, kind, int(length))
        except OSError:
            pass  # the client has gone, which some tests want


def main() -> None:
    cc = SendCC(sys.argv[1])
    address = ("", int(sys.argv[2]))
    # Dual-stack: IPv4 clients appear with mapped addresses, which must be one connection with their IPv4 packets.
    with socket.create_server(address, family=socket.AF_INET6, dualstack_ipv6=True, backlog=128) as listener:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(cc, connection), daemon=True).start()


if __name__ == "__main__":
    main()
