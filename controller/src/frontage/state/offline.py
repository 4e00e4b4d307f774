# SPDX-License-Identifier: Apache-2.0
"""The state that a configuration installs into an empty switch, as plain data.

The simulator and the benchmarks use it, because their pipelines run without a P4Runtime server. Numbers of table entries are
hexadecimal text, since some have 128 bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from finsy.proto import p4r

from frontage.config import Config
from frontage.p4.entries import Match, State, exact
from frontage.p4.p4info import Schema
from frontage.p4.replication import replicas_of, truncation_of
from frontage.state import worker
from frontage.state.allocation import Installed, allocate
from frontage.state.blocks import gate
from frontage.state.desired import TABLES, desired, supported
from frontage.state.fit import check_tables, check_trees
from frontage.state.resolved import resolve
from frontage.state.tree import leaf_ops, packets


def contents(config: Config, schema: Schema) -> tuple[State, list[p4r.PacketOut]]:
    """Return every entry in the order of installation, and the packets that the controller sends after them.

    Raises ReconcileError if the program lacks a feature or room.
    """
    config = config.complete({})
    nothing = Installed({})
    allocation = allocate(config, nothing)
    check_trees(schema, allocation)
    wanted = desired(config, allocation)
    wanted = supported(wanted | gate.entries(schema, config.ports, wanted), schema, config)
    check_tables(schema, config, Counter(key.table for key in wanted))
    order = {table: position for position, table in enumerate(TABLES)}
    ops = leaf_ops(resolve(config, allocation), nothing, resync=True)
    return dict(sorted(wanted.items(), key=lambda item: order[item[0].table])), list(packets(schema, ops.before))


def plain_entries(schema: Schema, state: State) -> Iterator[dict[str, Any]]:
    """Yield the entries of tables in the form that ``frontage-simulator`` reads."""
    for key, action in state.items():
        if key.table not in schema.tables:
            continue  # cells of registers, which only programs for Tofino have
        yield {
            "table": schema.tables[key.table].full_name,
            "match": [_match(match) for match in key.match],
            "action": action.name,
            "params": [f"{param:x}" for param in action.params],
        }


def plain_packets(schema: Schema, packets_out: Iterable[p4r.PacketOut]) -> Iterator[str]:
    """Yield the controller's packets as hexadecimal text."""
    widths = {field_id: width for field_id, _, width in schema.packet_out}
    for packet in packets_out:
        yield b"".join(field.value.rjust(widths[field.metadata_id] // 8, b"\0") for field in packet.metadata).hex()


def plain_sessions(config: Config, schema: Schema) -> Iterator[dict[str, Any]]:
    """Yield the clone sessions."""
    for key, action in worker.session(schema, config).items():
        (session,) = exact(key.match)
        replicas = [{"port": port, "instance": instance} for port, instance in replicas_of(action)]
        yield {"id": session, "replicas": replicas, "truncate_to": truncation_of(action), "class_of_service": 0}


def _match(match: Match) -> str:
    return f"{match[0]:x}/{match[1]}" if isinstance(match, tuple) else f"{match:x}"
