# SPDX-License-Identifier: Apache-2.0
"""The compiled program in this process, with the controller's table entries.

It serves tests with more packets than an emulated network can forward.
"""

from pathlib import Path

import yaml

import softswitch
from frontage.config import loads
from frontage.p4.entries import Action, Key, Match, exact
from frontage.p4.p4info import Schema
from frontage.p4.reasons import drops, outcomes
from frontage.p4.replication import replicas_of
from frontage.state.offline import contents, plain_packets
from frontage.state.worker import session
from frontage_testbed.datacentre.addresses import PIPE_PORTS
from frontage_testbed.programs import REPOSITORY

SOURCES = REPOSITORY / "p4src"
V1MODEL = "v1model/frontage.p4"
TOFINO1, TOFINO1QUIC, TOFINO2, TOFINO2CORE, TOFINO2FOLDED, TOFINO2FULL = (
    f"tna/tofino{name}.p4" for name in ("1", "1quic", "2", "2core", "2folded", "2full")
)


class Switch:
    """A pipeline programmed with a configuration. Its connection tables have 65,536 entries."""

    def __init__(
        self, configuration: dict[str, object], directory: Path, source: str = V1MODEL, pipes: int = 1, *, sources: Path = SOURCES
    ) -> None:
        """Compile ``source``, a file of the folder ``sources``, and program the pipeline; ``directory`` gets its files."""
        program = softswitch.compile(sources / source, defines={"CONNECTION_INDEX_BITS": "16"})
        assert program.p4info is not None
        p4info = directory / f"{Path(source).stem}.p4info.txtpb"
        p4info.write_text(program.p4info)
        schema = Schema.load(p4info)
        self._tables = schema.tables
        self._registers = schema.registers
        self._drop_counters = schema.drop_counters
        self._is_folded = schema.pipes_per_packet > 1
        self.pipeline = softswitch.Pipeline(program, pipes=pipes)
        config = loads(yaml.safe_dump(configuration), directory / "frontage.yaml")
        entries, packets_out = contents(config, schema)
        for key, action in entries.items():
            self._install(key, action)
        for key, action in session(schema, config).items():
            assert isinstance(key.match[0], int)
            self.pipeline.set_clone_session(key.match[0], [port for port, _ in replicas_of(action)])
        for packet in plain_packets(schema, packets_out):
            assert self.pipeline.send(bytes.fromhex(packet), config.device.cpu_port) == []

    def _install(self, key: Key, action: Action) -> None:
        if (register := self._registers.get(key.table)) is not None:
            (index,), (word,) = exact(key.match), action.params
            self.pipeline.set_register(register.full_name, index, word)
            return
        table = self._tables[key.table].full_name
        known = self.pipeline.program.tables[table]
        full_name = next(name for name in known["actions"] if name.rpartition(".")[2] == action.name)
        params = dict(zip(self.pipeline.program.actions[full_name], action.params, strict=True))
        if not key.match:
            self.pipeline.set_default(table, full_name, params)
            return
        match: dict[str, Match] = dict(zip(known["key"], key.match, strict=True))
        self.pipeline.insert(table, match, full_name, params)

    def send(self, frame: bytes, port: int, time_ns: int | None = None) -> list[tuple[int, bytes]]:
        """Return what leaves the switch, by port. In a folded program, the ports of all pipes but the first are in loopback."""
        came_out = self.pipeline.send(frame, port, time_ns=time_ns)
        if not self._is_folded:
            return came_out
        left = [(number, copy) for number, copy in came_out if number < PIPE_PORTS]
        for number, copy in came_out:
            if number >= PIPE_PORTS:
                left += self.send(copy, number, time_ns)
        return left

    def counts(self) -> dict[str, int]:
        """Return the nonzero packet counters, by reason of the drop and by how the server was found."""
        counts: dict[str, int] = {}
        reasons = dict.fromkeys(self._drop_counters, drops()) | {"outcomes": outcomes()}
        for counter in self.pipeline.program.counters:
            for index, reason in reasons.get(counter.rpartition(".")[2], {}).items():
                packets, _ = self.pipeline.counter(counter, index)
                if packets:
                    counts[reason.name] = counts.get(reason.name, 0) + packets
        return counts
