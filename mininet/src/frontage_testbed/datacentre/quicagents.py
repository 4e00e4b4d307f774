"""The loads of QUIC servers, as `frontage-cclb7-quic` shows them to Prometheus in each server's namespace."""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ..metricsclient import parse
from ..nodes import Namespace, NodeError

METRICS = ("127.0.0.1", 9153)
TIMEOUT = 5.0

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def network_of(pid: int) -> Iterator[None]:
    """This thread in the network namespace of a process."""
    own, other = (os.open(Path("/proc") / of / "ns" / "net", os.O_RDONLY) for of in ("thread-self", str(pid)))
    try:
        _enter(other)
        yield
    finally:
        _enter(own)
        os.close(own)
        os.close(other)


def _enter(namespace: int) -> None:
    if _libc.setns(namespace, 0) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class QuicAgents:
    """Reads N_AF; the servers write their cookies themselves."""

    module: Path | None = None

    def __init__(self) -> None:
        self._hosts: list[Namespace] = []

    def attach(self, hosts: Mapping[int, Namespace]) -> None:
        """Remember the servers."""
        self._hosts = [hosts[index] for index in sorted(hosts)]

    def active_flows(self) -> list[int]:
        """N_AF of every server, asked all at a time."""
        try:
            asked = [self._ask(host) for host in self._hosts]
            return [self._answer(connection) for connection in asked]
        except OSError as error:
            raise NodeError(f"a server does not tell its loads: {error}") from error

    @staticmethod
    def _ask(host: Namespace) -> socket.socket:
        # A socket stays in the namespace in which it was made.
        with network_of(host.pid):
            connection = socket.create_connection(METRICS, TIMEOUT)
        connection.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        return connection

    @staticmethod
    def _answer(connection: socket.socket) -> int:
        with connection, connection.makefile() as answer:
            return int(parse(answer.read()).total("frontage_cclb7_quic_active_flows"))

    def stop(self) -> None:
        """Nothing: the servers end with the testbed."""
