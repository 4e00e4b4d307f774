# SPDX-License-Identifier: Apache-2.0
"""``worker.p4``: the clone session of worker packets, which report queue depths to ingress."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from frontage.config.network import Port
from frontage.config.schema import Device
from frontage.limits import WORKER_SESSION
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
    """Return the clone session if a port's scheduler needs queue depths. It leads to the ports ``returns``."""
    if not any(port.uses_ranks for port in ports):
        return {}
    return dict([replication.session(WORKER_SESSION, [(port, 1) for port in returns])])
