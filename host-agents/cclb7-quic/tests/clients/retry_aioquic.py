# SPDX-License-Identifier: Apache-2.0
"""Complete a handshake with the token of a Retry: `retry_aioquic.py OUT HOST PORT`.

Start handshakes and leave each incomplete, until the server responds with a Retry (RFC 9000, section 8.1.2).
Then write the Retry to OUT, and complete that handshake once OUT has been removed.
"""

import socket
import ssl
import sys
import time
from pathlib import Path

from aioquic.h3.connection import H3_ALPN
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, HandshakeCompleted

MAX_HANDSHAKES = 1000
"""Maximum number of handshakes until a Retry."""
RESPONSE_TIMEOUT = 10.0
"""Maximum time for a datagram of the server in seconds."""
MAX_DATAGRAM_LENGTH = 1 << 16


class Client:
    """A connection on its own port, whose packets are sent and received one at a time."""

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._socket = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        self._socket.settimeout(RESPONSE_TIMEOUT)
        self._socket.connect(server)
        configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE)
        self._quic = QuicConnection(configuration=configuration)
        self._quic.connect(server, now=time.monotonic())

    def send(self) -> None:
        for datagram, _ in self._quic.datagrams_to_send(now=time.monotonic()):
            self._socket.send(datagram)

    def receive(self) -> bytes:
        datagram = self._socket.recv(MAX_DATAGRAM_LENGTH)
        self._quic.receive_datagram(datagram, self._server, now=time.monotonic())
        return datagram

    def close(self) -> None:
        self._quic.close()
        self.send()

    def is_connected(self) -> bool:
        while event := self._quic.next_event():
            if isinstance(event, ConnectionTerminated):
                sys.exit(f"the server closed the connection: {event}")
            if isinstance(event, HandshakeCompleted):
                return True
        return False


def main(out: str, host: str, port: str) -> None:
    incomplete = []
    while len(incomplete) < MAX_HANDSHAKES:
        client = Client((host, int(port)))
        client.send()
        response = client.receive()
        if response[0] & 0xF0 == 0xF0:
            break
        incomplete.append(client)
    else:
        sys.exit(f"no Retry after {MAX_HANDSHAKES} handshakes")
    Path(out).write_bytes(response)
    while Path(out).exists():
        time.sleep(0.01)
    while not client.is_connected():
        client.send()
        client.receive()
    client.send()
    # The server waits for incomplete handshakes when it shuts down.
    for each in (client, *incomplete):
        each.close()


main(*sys.argv[1:])
