# SPDX-License-Identifier: Apache-2.0
"""Reads the loads of QUIC servers from their Prometheus metrics in each server's namespace."""

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
ACTIVE_FLOWS = "frontage_cclb7_quic_active_flows"
"""Metric of N_AF of `frontage-cclb7-quic`."""
TIMEOUT = 5.0

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def network_of(pid: int) -> Iterator[None]:
    """Run the context with this thread in the network namespace of a process."""
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
    """Reads N_AF; the servers themselves write the cookies."""

    module: Path | None = None

    def __init__(self, active_flows: str = ACTIVE_FLOWS) -> None:
        """`active_flows` is the metric of N_AF."""
        self._active_flows = active_flows
        self._hosts: list[Namespace] = []

    def attach(self, hosts: Mapping[int, Namespace]) -> None:
        """Store the server hosts."""
        self._hosts = [hosts[index] for index in sorted(hosts)]

    def active_flows(self) -> list[int]:
        """Return N_AF of every server; all are queried in parallel."""
        try:
            connections = [self._query(host) for host in self._hosts]
            return [self._response(connection) for connection in connections]
        except OSError as error:
            raise NodeError(f"{METRICS[0]}:{METRICS[1]}: a server's metrics are not available: {error}") from error

    @staticmethod
    def _query(host: Namespace) -> socket.socket:
        # A socket stays in the namespace in which it was created.
        with network_of(host.pid):
            connection = socket.create_connection(METRICS, TIMEOUT)
        connection.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        return connection

    def _response(self, connection: socket.socket) -> int:
        with connection, connection.makefile() as answer:
            return int(parse(answer.read()).total(self._active_flows))

    def stop(self) -> None:
        """Do nothing: the servers end with the testbed."""
