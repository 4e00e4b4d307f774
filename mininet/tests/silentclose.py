# SPDX-License-Identifier: Apache-2.0
"""A client that vanishes: `silentclose.py ADDRESS PORT PATH CONNECTIONS`.

Begins downloads and forgets their sockets, as after a crash of the host: no FIN and no RST leaves (tcp_repair in tcp(7)). The
kernel then rejects the server's next segment with an RST, which has no timestamps because there is no socket.
"""

import socket
import sys

TCP_REPAIR = 19
TIMEOUT = 30.0


def begin(address: str, port: int, path: str) -> socket.socket:
    """Return a connection whose response has begun."""
    connection = socket.create_connection((address, port), TIMEOUT)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: frontage\r\n\r\n".encode())
    if not connection.recv(1):
        raise SystemExit(f"{address}: the server closed the connection")
    return connection


def main(address: str, port: str, path: str, connections: str) -> None:
    downloads = [begin(address, int(port), path) for _ in range(int(connections))]
    for download in downloads:
        download.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        download.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
