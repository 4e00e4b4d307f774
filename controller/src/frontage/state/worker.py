# SPDX-License-Identifier: Apache-2.0
"""``worker.p4``: the clone sessions of worker packets, which report queue depths to ingress, and loads to other pipes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from frontage.config.network import Port
from frontage.config.schema import Device
from frontage.limits import TREE_SESSION, WORKER_SESSION
from frontage.p4 import replication
from frontage.p4.entries import State

RECIRCULATION_PORTS = {"tna": 68, "t2na": 6}
"""The recirculation port of Tofino's first pipe, by architecture."""
PIPE_PORTS = 128
"""Port numbers of a pipe of Tofino."""


def return_ports(architecture: str, device: Device) -> list[int]:
    """Return the ports that lead workers back to ingress.

    They are the recirculation ports of Tofino's pipes, or the CPU port of other targets, which has no queue.
    """
    first = RECIRCULATION_PORTS.get(architecture)
    if first is None:
        return [device.cpu_port]
    return [first + PIPE_PORTS * pipe for pipe in range(device.pipes)]


def sessions(ports: Iterable[Port], returns: Sequence[int]) -> State:
    """Return the clone sessions, which lead to the ports ``returns``.

    One is there if a port's scheduler needs queue depths, and the other if there are several pipes.
    """
    replicas = [(port, 1) for port in returns]
    numbers = [WORKER_SESSION] if any(port.uses_ranks for port in ports) else []
    if len(returns) > 1:
        numbers.append(TREE_SESSION)
    return dict(replication.session(number, replicas) for number in numbers)
