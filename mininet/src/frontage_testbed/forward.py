# SPDX-License-Identifier: Apache-2.0
"""Makes a TCP service of a sandbox reachable from the machine, whose network the sandbox does not share.

A socket belongs to the network in which it was created. So the machine's process listens before it starts the sandbox, and the
sandbox accepts on the inherited socket.
"""

from __future__ import annotations

import contextlib
import socket
import threading

_CHUNK = 65536
_HOST = "127.0.0.1"


class Forward:
    """A port of the machine's loopback address, whose connections go to a service in the sandbox."""

    def __init__(self, port: int) -> None:
        """Listen at ``port``, or at a free one if it is in use."""
        try:
            self._listener = socket.create_server((_HOST, port))
        except OSError:
            self._listener = socket.create_server((_HOST, 0))
        self.address = f"{_HOST}:{self._listener.getsockname()[1]}"

    def start(self, host: str, port: int) -> None:
        """Accept connections in the background. Call this in the sandbox."""
        threading.Thread(target=self._accept, args=(host, port), daemon=True).start()

    def _accept(self, host: str, port: int) -> None:
        while True:
            client, _ = self._listener.accept()
            try:
                service = socket.create_connection((host, port))
            except OSError:
                client.close()
                continue
            for source, sink in ((client, service), (service, client)):
                threading.Thread(target=_copy, args=(source, sink), daemon=True).start()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    """Copy bytes until one side closes, then close the other one."""
    with contextlib.suppress(OSError):
        while data := source.recv(_CHUNK):
            sink.sendall(data)
    for one in (source, sink):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
