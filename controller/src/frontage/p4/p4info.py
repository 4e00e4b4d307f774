# SPDX-License-Identifier: Apache-2.0
"""The interface of the P4 program: names, ids and widths from its P4Info, and the wire format of entries."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from finsy.proto import p4i, p4r
from google.protobuf import text_format

from frontage import limits
from frontage.p4 import cells
from frontage.p4.entries import Action, Key, Match, exact


class PipelineError(Exception):
    """The compiled program cannot be read, or does not match this version of the controller."""


@dataclass(frozen=True, slots=True)
class ActionInfo:
    """An action of a table."""

    id: int
    name: str
    params: tuple[int, ...]
    """The ids of the parameters, in order."""
    widths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table of the P4 program."""

    id: int
    name: str
    full_name: str
    size: int
    fields: tuple[int, ...]
    """The ids of the match fields, in order."""
    widths: tuple[int, ...]
    lpm: tuple[bool, ...]
    actions: dict[str, ActionInfo]
    actions_by_id: dict[int, ActionInfo]
    direct_counter: bool
    selector: bool
    """True if an entry has several members, of which a hash chooses one. Their action has one parameter; the parameters of an entry's
    `Action` are those of its members."""
    direct_meter: bool


@dataclass(frozen=True, slots=True)
class RegisterInfo:
    """A register of the P4 program."""

    id: int
    name: str
    full_name: str
    size: int


def _tail(name: str, parts: int) -> str:
    return ".".join(name.split(".")[-parts:])


class Schema:
    """Lookups by short name, and conversion of entries from and to the wire format."""

    def __init__(self, p4info: p4i.P4Info):
        self.p4info = p4info
        self.architecture: str = p4info.pkg_info.arch
        """The name of the architecture in lower case, such as v1model or t2na; empty if the P4Info has none."""
        params: dict[int, ActionInfo] = {}
        for action in p4info.actions:
            params[action.preamble.id] = ActionInfo(
                id=action.preamble.id,
                name=_tail(action.preamble.name, 1),
                params=tuple(param.id for param in action.params),
                widths=tuple(param.bitwidth for param in action.params),
            )
        counted = {counter.direct_table_id for counter in p4info.direct_counters}
        metered = {meter.direct_table_id for meter in p4info.direct_meters}
        self.tables: dict[str, TableInfo] = {}
        self.tables_by_id: dict[int, TableInfo] = {}
        lpm = p4i.MatchField.LPM
        for table in p4info.tables:
            actions = [params[ref.id] for ref in table.action_refs]
            name = _tail(table.preamble.name, 2)
            if name in self.tables:
                name = _tail(table.preamble.name, 3)
            info = TableInfo(
                id=table.preamble.id,
                name=name,
                full_name=table.preamble.name,
                size=table.size,
                fields=tuple(field.id for field in table.match_fields),
                widths=tuple(field.bitwidth for field in table.match_fields),
                lpm=tuple(field.match_type == lpm for field in table.match_fields),
                actions={action.name: action for action in actions},
                actions_by_id={action.id: action for action in actions},
                direct_counter=table.preamble.id in counted,
                selector=table.implementation_id != 0,
                direct_meter=table.preamble.id in metered,
            )
            self.tables[info.name] = info
            self.tables_by_id[info.id] = info
        self.registers: dict[str, RegisterInfo] = {}
        """The registers, except those that have the name of a table."""
        self.registers_by_id: dict[int, RegisterInfo] = {}
        for register in p4info.registers:
            name = _tail(register.preamble.name, 2)
            if name not in self.tables:
                found = RegisterInfo(register.preamble.id, name, register.preamble.name, register.size)
                self.registers[name] = self.registers_by_id[found.id] = found
        self.counters: dict[str, int] = {}
        for counter in p4info.counters:
            # A counter is in the top-level control, or is the only counter of a control with the same name.
            parts = counter.preamble.name.split(".")
            self.counters[".".join(parts[-3:-1]) if parts[-1:] == parts[-2:-1] else parts[-1]] = counter.preamble.id
        levels = (re.search(r"\.level(\d+)\.", register.preamble.name) for register in p4info.registers)
        self.tree_levels = max((int(level[1]) for level in levels if level), default=limits.MAX_TREE_DEPTH)
        """Levels of the tournament trees above the leaves. A program that has only leaves, as in an experiment, takes trees of any size."""
        self.digests_by_id = {digest.preamble.id: _tail(digest.preamble.name, 1) for digest in p4info.digests}
        self.packet_out: tuple[tuple[int, str, int], ...] = ()
        self.packet_in: tuple[tuple[int, str, int], ...] = ()
        for header in p4info.controller_packet_metadata:
            fields = tuple((field.id, field.name, field.bitwidth) for field in header.metadata)
            if header.preamble.name == "packet_out":
                self.packet_out = fields
            elif header.preamble.name == "packet_in":
                self.packet_in = fields

    @classmethod
    def load(cls, file: Path) -> Schema:
        """Read a P4Info file in text form. Raises PipelineError."""
        try:
            return cls(text_format.Parse(file.read_text(encoding="utf-8"), p4i.P4Info()))
        except (OSError, UnicodeDecodeError) as error:
            raise PipelineError(f"{file}: cannot be read: {error}: compile the P4 program, or correct device.pipeline") from None
        except (text_format.ParseError, KeyError) as error:
            raise PipelineError(f"{file}: invalid P4Info: {error}: use the file that the P4 compiler wrote") from None

    @property
    def pipes_per_packet(self) -> int:
        """How many pipes of a Tofino chip a packet passes in sequence, each with a drop counter. The first one has the ports."""
        return 1 + sum(counter in self.counters for counter in ("gate_drops", "edge_drops", "scheduling_drops"))

    @property
    def drop_counters(self) -> list[str]:
        """The counters of dropped packets by reason. Each gress of a pipe that drops packets has one."""
        return [name for name in self.counters if name == "drops" or name.endswith("_drops")]

    def table(self, name: str) -> TableInfo:
        try:
            return self.tables[name]
        except KeyError:
            raise PipelineError(f"the P4Info has no table {name}: use a controller and a P4 program of the same version") from None

    def present(self, names: Iterable[str]) -> list[TableInfo]:
        """Return those tables that the program has: a profile may leave out features with their tables."""
        return [self.tables[name] for name in names if name in self.tables]

    def counter(self, name: str) -> int:
        try:
            return self.counters[name]
        except KeyError:
            raise PipelineError(
                f"the P4Info has no counter {name}: use a controller and a P4 program of the same version"
            ) from None

    def encode(self, key: Key, action: Action | None) -> p4r.TableEntry:
        """Return the wire format of an entry, or of its key alone without an action (for a deletion)."""
        table = self.table(key.table)
        entry = p4r.TableEntry(table_id=table.id)
        if not key.match:
            entry.is_default_action = True
        if len(key.match) not in (0, len(table.fields)):
            raise PipelineError(f"{table.full_name} has {len(table.fields)} match fields, not {len(key.match)}")
        for field_id, is_lpm, value in zip(table.fields, table.lpm, key.match, strict=False):
            if is_lpm and value == (0, 0):
                continue  # matches anything: the field is left out (P4Runtime, section 9.1.1)
            match = entry.match.add(field_id=field_id)
            if isinstance(value, tuple):
                if not is_lpm:
                    raise PipelineError(f"{table.full_name}: match field {field_id} is not of kind LPM")
                match.lpm.value = to_bytes(value[0])
                match.lpm.prefix_len = value[1]
            else:
                match.exact.value = to_bytes(value)
        if action is not None and table.selector:
            for member in action.params:
                one = entry.action.action_profile_action_set.action_profile_actions.add(weight=1)
                self._encode_action(table, Action(action.name, (member,)), one.action)
        elif action is not None:
            self._encode_action(table, action, entry.action.action)
            if action.meter is not None:
                rate, burst = action.meter
                entry.meter_config.CopyFrom(p4r.MeterConfig(cir=rate, cburst=burst, pir=rate, pburst=burst))
        return entry

    @staticmethod
    def _encode_action(table: TableInfo, action: Action, message: p4r.Action) -> None:
        info = table.actions.get(action.name)
        if info is None or len(info.params) != len(action.params):
            raise PipelineError(
                f"{table.full_name} has no action {action.name} of {len(action.params)} parameters: "
                "use a controller and a P4 program of the same version"
            )
        message.action_id = info.id
        for param_id, value in zip(info.params, action.params, strict=True):
            message.params.add(param_id=param_id, value=to_bytes(value))

    def decoder(self) -> Callable[[p4r.TableEntry], tuple[Key, Action]]:
        """Return a function that converts entries from the wire format.

        Servers may send match fields in any order; the result has them in the order of the P4Info.
        """
        tables = self.tables_by_id
        from_bytes = int.from_bytes

        def decode(entry: p4r.TableEntry) -> tuple[Key, Action]:
            table = tables[entry.table_id]
            values: dict[int, Match] = {}
            for match, is_lpm in zip(entry.match, table.lpm, strict=False):
                if is_lpm or match.HasField("lpm"):
                    values[match.field_id] = (from_bytes(match.lpm.value, "big"), match.lpm.prefix_len)
                else:
                    values[match.field_id] = from_bytes(match.exact.value, "big")
            # A wildcard of an LPM field is an omitted field (P4Runtime, section 9.1.1).
            key = tuple(values.get(i, (0, 0)) for i in table.fields) if not entry.is_default_action else ()
            if table.selector:
                members = [one.action for one in entry.action.action_profile_action_set.action_profile_actions]
                name = table.actions_by_id[members[0].action_id].name if members else "NoAction"
                return Key(table.name, key), Action(name, tuple(from_bytes(one.params[0].value, "big") for one in members))
            message = entry.action.action
            info = table.actions_by_id.get(message.action_id)
            if info is None:
                return Key(table.name, key), Action("NoAction")
            given = {param.param_id: from_bytes(param.value, "big") for param in message.params}
            meter = (entry.meter_config.pir, entry.meter_config.pburst) if entry.HasField("meter_config") else None
            return Key(table.name, key), Action(info.name, tuple(given.get(i, 0) for i in info.params), meter)

        return decode

    def encode_cell(self, key: Key, action: Action | None) -> p4r.RegisterEntry:
        """Return the wire format of a register's cell (`frontage.p4.cells`). Without an action, it is zero."""
        (index,) = exact(key.match)
        entry = p4r.RegisterEntry(register_id=self.registers[key.table].id)
        entry.index.index = index
        entry.data.bitstring = to_bytes(action.params[0] if action is not None else 0)
        return entry

    def decode_cell(self, entry: p4r.RegisterEntry) -> tuple[Key, Action] | None:
        """Convert a register's cell from the wire format. Return None if it is zero."""
        word = int.from_bytes(entry.data.bitstring, "big")
        return cells.cell(self.registers_by_id[entry.register_id].name, entry.index.index, word) if word else None

    def packet_out_of(self, payload: bytes, **fields: int) -> p4r.PacketOut:
        """Return a packet-out. Raises PipelineError if the program's header does not have these ``fields``."""
        ids = {name: field_id for field_id, name, _ in self.packet_out}
        missing = fields.keys() - ids.keys()
        if missing:
            raise PipelineError(
                f"the packet_out header of the P4Info has no field {', '.join(sorted(missing))}: "
                "use a controller and a P4 program of the same version"
            )
        packet = p4r.PacketOut(payload=payload)
        for name, value in fields.items():
            packet.metadata.add(metadata_id=ids[name], value=to_bytes(value))
        return packet

    def entry_counts(self, keys: Iterable[Key]) -> dict[str, int]:
        """Return the number of entries by table."""
        counts: dict[str, int] = {}
        for key in keys:
            counts[key.table] = counts.get(key.table, 0) + 1
        return counts


def to_bytes(value: int) -> bytes:
    """Return the canonical byte string of an unsigned value (P4Runtime, section 8.4): the shortest, at least one byte."""
    return value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")


@dataclass(frozen=True)
class Pipeline:
    """A compiled program: its schema, its device configuration, and the cookie that identifies it in the switch."""

    schema: Schema
    device_config: bytes
    cookie: int

    @classmethod
    def load(cls, p4info: Path, device_config: Path) -> Pipeline:
        schema = Schema.load(p4info)
        try:
            config = device_config.read_bytes()
        except OSError as error:
            raise PipelineError(
                f"{device_config}: cannot be read: {error}: compile the P4 program, or correct device.pipeline"
            ) from None
        digest = hashlib.sha256(schema.p4info.SerializeToString(deterministic=True) + config).digest()
        # A switch without a cookie reports 0.
        return cls(schema, config, int.from_bytes(digest[:8], "big") or 1)

    def forwarding_config(self) -> p4r.ForwardingPipelineConfig:
        return p4r.ForwardingPipelineConfig(
            p4info=self.schema.p4info,
            p4_device_config=self.device_config,
            cookie=p4r.ForwardingPipelineConfig.Cookie(cookie=self.cookie),
        )
