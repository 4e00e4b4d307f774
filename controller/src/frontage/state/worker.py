# SPDX-License-Identifier: Apache-2.0
"""``worker.p4``: the clone session of worker packets, which bring queue depths to ingress, and loads to trees in egress."""

from __future__ import annotations

from frontage.config.devices import Device
from frontage.config.schema import Config
from frontage.limits import WORKER_SESSION
from frontage.p4 import replication
from frontage.p4.entries import State
from frontage.p4.p4info import Schema

RECIRCULATION_PORTS = {"tna": 68, "t2na": 6}
"""The recirculation port of Tofino's first pipe, by architecture."""
PIPE_PORTS = 128
"""Port numbers of a pipe of Tofino."""
WORKER_BYTES = 64
"""Bytes of a worker on Tofino. Its header has 26 bytes, and the rest of the packet that caused it would only use up the
bandwidth of the recirculation ports."""


def return_ports(schema: Schema, device: Device) -> list[int]:
    """Return the ports that lead workers back to ingress.

    On Tofino, they are the recirculation ports of the pipes with trees or schedulers: of a folded program, those behind the edge
    in each sequence. Elsewhere, it is the CPU port, which does not queue.
    """
    first = RECIRCULATION_PORTS.get(schema.architecture)
    if first is None:
        return [device.cpu_port]
    sequence = schema.pipes_per_packet
    edge = int("gate_drops" in schema.counters)
    return [first + PIPE_PORTS * pipe for pipe in range(device.pipes) if sequence == 1 or pipe % sequence > edge]


def session(schema: Schema, config: Config) -> State:
    """Return the clone session, or nothing if no packet becomes a worker.

    On Tofino, trees are in egress, so reports become workers. Elsewhere, only schedulers that use ranks need workers.
    """
    on_tofino = schema.architecture in RECIRCULATION_PORTS
    if not on_tofino and not any(port.uses_ranks for port in config.ports):
        return {}
    replicas = [(port, 1) for port in return_ports(schema, config.device)]
    return dict([replication.session(WORKER_SESSION, replicas, WORKER_BYTES if on_tofino else 0)])
