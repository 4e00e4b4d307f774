# SPDX-License-Identifier: Apache-2.0
"""``worker.p4``: the clone session of worker packets, which report queue depths to ingress."""

from __future__ import annotations

from collections.abc import Iterable

from frontage.config.network import Port
from frontage.limits import WORKER_SESSION
from frontage.p4 import replication
from frontage.p4.entries import State


def sessions(ports: Iterable[Port], cpu_port: int) -> State:
    """Return the clone session if a port's scheduler needs queue depths.

    It leads to the CPU port, which has no queue and from which workers return.
    """
    if not any(port.uses_ranks for port in ports):
        return {}
    return dict([replication.session(WORKER_SESSION, [(cpu_port, 1)])])
