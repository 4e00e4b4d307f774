# SPDX-License-Identifier: Apache-2.0
"""Runs tests of STF, p4c's simple test framework, over P4Runtime, for switches outside this process.

It supports the statements that p4c's samples for v1model use.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from finsy.proto import p4i, p4r

import wire
from corpus import read
from frontage.p4.p4info import Pipeline
from target import Running, Target
from wire import Field, MatchType

ADD = re.compile(r"(?P<table>\S+)\s+(?:(?P<priority>\d+)\s+)?(?P<key>(?:\S+:\S+\s+)*)(?P<action>\S+?)\s*\((?P<args>[^)]*)\)")
SET_DEFAULT = re.compile(r"(?P<table>\S+)\s+(?P<action>\S+?)\s*\((?P<args>[^)]*)\)")
DIGIT = {"0x": 4, "0o": 3, "0b": 1}
"""Bits per digit, by base."""

Named = TypeVar("Named", p4i.Table, p4i.Action)


class StfError(Exception):
    """The reason why a test cannot be run."""


async def differences(target: Target, pipeline: Pipeline, test: Path) -> list[str]:
    """Run a test, and return the differences from its expectations."""
    async with target.running(pipeline) as switch:
        script = _Script(pipeline.schema.p4info, switch)
        for number, text in enumerate(read(test).splitlines(), 1):
            line = text.partition("#")[0].strip()
            try:
                if line:
                    await script.statement(number, line)
            except StfError as error:
                raise StfError(f"line {number}: {line}: {error}") from None
        return list(script.differences())


class _Script:
    def __init__(self, info: p4i.P4Info, switch: Running):
        self.info = info
        self.switch = switch
        self.sent: dict[int, list[bytes]] = defaultdict(list)
        self.expected: dict[int, list[tuple[int, str]]] = defaultdict(list)
        self.nodes: list[tuple[int, list[int]]] = []
        self.groups: dict[int, list[tuple[int, int]]] = {}
        self.ports: set[int] = set()

    async def statement(self, number: int, line: str) -> None:
        command, _, rest = line.partition(" ")
        words = rest.split()
        match command.lower():
            case "packet":
                self.ports.add(int(words[0]))
                for packet in await self.switch.packets([(int(words[0]), bytes.fromhex("".join(words[1:])))]):
                    for port, frame in packet:
                        self.sent[port].append(frame)
            case "expect":
                self.ports.add(int(words[0]))
                self.expected[int(words[0])].append((number, "".join(words[1:]).lower()))
            case "add":
                await self.write(p4r.Update.INSERT, p4r.Entity(table_entry=self.entry(rest)))
            case "setdefault":
                await self.write(p4r.Update.MODIFY, p4r.Entity(table_entry=self.default(rest)))
            case "mirroring_add":
                await self.write(p4r.Update.INSERT, wire.clone_session(int(words[0]), [int(words[1])]))
            case "mc_mgrp_create":
                self.groups[int(words[0])] = []
                await self.write(p4r.Update.INSERT, wire.multicast_group(int(words[0]), []))
            case "mc_node_create":
                self.nodes.append((int(words[0]), [int(word) for word in words[1:]]))
            case "mc_node_associate":
                group, (instance, ports) = int(words[0]), self.nodes[int(words[1])]
                self.groups[group] += [(port, instance) for port in ports]
                await self.write(p4r.Update.MODIFY, wire.multicast_group(group, self.groups[group]))
            case "wait":
                pass  # all packets are processed before the next statement
            case _:
                raise StfError("is not known to this runner")

    async def write(self, kind: p4r.Update.Type.ValueType, entity: p4r.Entity) -> None:
        for error in (await self.switch.write([p4r.Update(type=kind, entity=entity)])).values():
            raise StfError(error)

    def entry(self, text: str) -> p4r.TableEntry:
        found = ADD.match(text.strip())
        if found is None:
            raise StfError("invalid statement: expected table, key and action")
        table = _by_name(self.info.tables, found["table"])
        key: dict[int, Field | None] = {field.id: _anything(field) for field in table.match_fields}
        for pair in found["key"].split():
            name, _, value = pair.partition(":")
            field = _key_field(table, name)
            key[field.id] = _field(field, value)
        call = p4r.TableAction(action=self.call(table, found["action"], found["args"]))
        # P4Runtime priorities start at 1.
        return wire.entry(table, key, call, int(found["priority"] or 0) + 1)

    def default(self, text: str) -> p4r.TableEntry:
        found = SET_DEFAULT.match(text.strip())
        if found is None:
            raise StfError("invalid statement: expected table and action")
        table = _by_name(self.info.tables, found["table"])
        call = p4r.TableAction(action=self.call(table, found["action"], found["args"]))
        return p4r.TableEntry(table_id=table.preamble.id, action=call, is_default_action=True)

    def call(self, table: p4i.Table, name: str, args: str) -> p4r.Action:
        ids = {ref.id for ref in table.action_refs}
        info = _by_name([action for action in self.info.actions if action.preamble.id in ids], name)
        values = dict(arg.strip().split(":") for arg in args.split(",") if arg.strip())
        return wire.action(info, [int(values[param.name], 0) for param in info.params])

    def differences(self) -> Iterator[str]:
        """Compare as p4c's driver does: port by port, in order. Ports that the test does not name are ignored."""
        for port in sorted(self.ports):
            expected, sent = self.expected[port], self.sent[port]
            if any(not pattern for _, pattern in expected):
                continue
            if len(expected) != len(sent):
                yield f"port {port}: expected {len(expected)} packets, got {len(sent)}: {[frame.hex() for frame in sent]}"
            for (number, pattern), frame in zip(expected, sent, strict=False):
                whole = "$" if pattern.endswith("$") else ""
                if not re.match(pattern.rstrip("$").replace("*", ".") + whole, frame.hex()):
                    yield f"port {port}, line {number}: expected {pattern}, got {frame.hex()}"


def _by_name(named: Iterable[Named], name: str) -> Named:
    """Return the object with this name or, without one, the only object whose name ends with it."""
    every = list(named)
    found = [each for each in every if each.preamble.name == name] or [each for each in every if each.preamble.name.endswith(name)]
    if len(found) != 1:
        raise StfError(f"{len(found)} tables or actions match {name}")
    return found[0]


def _key_field(table: p4i.Table, name: str) -> p4i.MatchField:
    name = re.sub(r"\$(\d+)", r"[\1]", name)
    ends = (name, f"{name}.$valid$", f"{name}$")
    for field in table.match_fields:
        if field.name in ends or any(field.name.endswith(f".{end}") for end in ends):
            return field
    raise StfError(f"unknown key {name} of table {table.preamble.name}")


def _anything(field: p4i.MatchField) -> Field | None:
    return Field(0) if field.match_type == MatchType.EXACT else None


def _field(info: p4i.MatchField, text: str) -> Field:
    for separator in ("&&&", "/", "->", ".."):
        left, found, right = text.partition(separator)
        if found:
            return Field(int(left, 0), int(right, 0))
    if "*" not in text:
        return Field(int(text, 0), info.bitwidth if info.match_type == MatchType.LPM else None)
    base, digits = text[:2], text[2:]
    bits = DIGIT[base]
    value = int(base + digits.replace("*", "0"), 0)
    if info.match_type == MatchType.LPM:
        return Field(value, info.bitwidth - bits * digits.count("*"))
    ones = format((1 << bits) - 1, "x")
    mask = "".join("0" if digit == "*" else ones for digit in digits)
    return Field(value, int(base + mask, 0))
