"""``worker.p4``: the clone session by which packets bring news of queues back to ingress."""

from __future__ import annotations

from frontage.config import Config
from frontage.limits import WORKER_SESSION
from frontage.p4 import replication
from frontage.p4.entries import State


def sessions(config: Config) -> State:
    """One, where a port's scheduler needs news. It leads to the CPU port, which has no queue, and from which workers turn back."""
    if not any(port.ranks for port in config.ports):
        return {}
    return dict([replication.session(WORKER_SESSION, [(config.device.cpu_port, 1)])])
