# SPDX-License-Identifier: Apache-2.0
"""One round of the differential test: two freshly started switches, random entries, random packets, and the differences."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from finsy.proto import p4r
from google.protobuf import text_format

from bmv2_json import CompiledProgram
from data_centre import Site
from entries import Entries
from frontage.p4.p4info import Pipeline
from packets import Values, packet
from target import Packet, Running, Target

WRITE = 100
"""Updates per request: the errors of this many fit into a gRPC status."""
BATCH = 16
"""Packets per batch: BMv2's queues can hold them even if each is replicated."""


@dataclass(frozen=True)
class Difference:
    program: str
    seed: int
    """Seed of the round."""
    what: str
    left: dict[str, str]
    """The observation on each switch."""
    entries: str = ""

    def __str__(self) -> str:
        seen = "\n".join(f"  {name}: {saw}" for name, saw in self.left.items())
        return f"{self.program}, round {self.seed}: {self.what}\n{seen}\n{self.entries}".rstrip()


@dataclass
class Result:
    left: int = 0
    differences: list[Difference] = field(default_factory=list)


@dataclass(frozen=True)
class Restrictions:
    """Restrictions that keep a program from undefined or endless behaviour."""

    empty_tables: tuple[str, ...] = ()
    """Tables without entries."""
    fixed_defaults: tuple[str, ...] = ()
    """Tables that keep the program's default action."""
    removed_tables: frozenset[str] = frozenset()
    """Tables that P4Info contains, but that a compiler has removed from the program."""
    cut: bool = True
    """True if some packets are truncated."""


@dataclass(frozen=True)
class Round:
    name: str
    program: tuple[Path, Path]
    """Paths of JSON and P4Info."""
    seed: int
    packets: int
    site: Site | None = None
    """Site whose entries are used; None for random entries."""
    restrictions: Restrictions = Restrictions()

    async def run(self, targets: Sequence[Target], progressed: Callable[[int], None]) -> Result:
        compiled, p4info = self.program
        pipeline = Pipeline.load(p4info, compiled)
        program, random = CompiledProgram(compiled), Random(self.seed)
        values = Values(random, program)
        result = Result()
        async with contextlib.AsyncExitStack() as stack:
            running = {target.name: await stack.enter_async_context(target.running(pipeline)) for target in targets}
            restrict = self.restrictions
            entries = Entries(
                program,
                pipeline.schema.p4info,
                values,
                restrict.empty_tables,
                restrict.fixed_defaults,
                restrict.removed_tables,
            )
            if self.site:
                updates, first = self.site.updates_and_packets(pipeline.schema)
                values.known = 0.95
                for ref, value in self.site.fields():
                    values.keys[ref].append(value)
                for update in updates:
                    entries.learn(update.entity.table_entry)
            else:
                updates, first = list(entries.updates()), []
            installed = await self.install(running, updates, result)
            for told in first:
                await self.send(running, [told], installed, result)
            # BMv2's threads may access a register for one packet before they have finished another.
            size = 1 if program.json["register_arrays"] else BATCH
            for start in range(0, self.packets, size):
                batch = [packet(program, values, self.restrictions.cut) for _ in range(min(size, self.packets - start))]
                if self.site:
                    batch = [self.site.spoken(random, each) for each in batch]
                await self.send(running, batch, installed, result)
                progressed(len(batch))
            await self.counters(running, pipeline, result)
        return result

    async def install(self, running: dict[str, Running], updates: list[p4r.Update], result: Result) -> list[p4r.Update]:
        """Write the updates, and return those that all switches accepted."""
        installed = []
        for start in range(0, len(updates), WRITE):
            installed += await self.write(running, updates[start : start + WRITE], result)
        return installed

    async def write(self, running: dict[str, Running], updates: list[p4r.Update], result: Result) -> list[p4r.Update]:
        refused = await asyncio.gather(*(switch.write(updates) for switch in running.values()))
        installed = []
        for index, update in enumerate(updates):
            errors = [errors.get(index) for errors in refused]
            if not any(errors):
                installed.append(update)
            elif not all(errors):
                said = {name: error or "accepted" for name, error in zip(running, errors, strict=True)}
                result.differences.append(Difference(self.name, self.seed, f"write {_text(update)}", said))
        return installed

    async def send(self, running: dict[str, Running], batch: list[Packet], installed: list[p4r.Update], result: Result) -> None:
        outputs = await asyncio.gather(*(switch.packets(batch) for switch in running.values()))
        for number, (port, frame) in enumerate(batch):
            # The order of one packet's copies is undefined.
            left = {name: sorted(output[number]) for name, output in zip(running, outputs, strict=True)}
            first, *others = left.values()
            result.left += len(first)
            if any(other != first for other in others):
                seen = {
                    name: ", ".join(f"port {out}: {copy.hex()}" for out, copy in copies) or "nothing"
                    for name, copies in left.items()
                }
                entries = "\n".join(f"  {_text(update)}" for update in installed)
                result.differences.append(Difference(self.name, self.seed, f"packet by port {port}: {frame.hex()}", seen, entries))

    async def counters(self, running: dict[str, Running], pipeline: Pipeline, result: Result) -> None:
        for entity in _counters(pipeline):
            cells = await asyncio.gather(*(switch.read(entity) for switch in running.values()))
            texts = [sorted(_text(_count(cell)) for cell in found if not _zero(cell)) for found in cells]
            if any(text != texts[0] for text in texts):
                seen = {
                    name: "; ".join(t for t in text if any(t not in o for o in texts))
                    for name, text in zip(running, texts, strict=True)
                }
                result.differences.append(Difference(self.name, self.seed, f"counters of {_text(entity)}", seen))


def _counters(pipeline: Pipeline) -> Iterator[p4r.Entity]:
    """Return read requests for all counters. BMv2's P4Runtime server cannot read registers."""
    info = pipeline.schema.p4info
    for counter in info.counters:
        yield p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=counter.preamble.id))
    for direct in info.direct_counters:
        entity = p4r.Entity()
        entity.direct_counter_entry.table_entry.table_id = direct.direct_table_id
        yield entity


def _count(entity: p4r.Entity) -> p4r.Entity:
    """Return the entity without optional parts: the action of a direct counter's entry, and the order of its key."""
    if entity.HasField("direct_counter_entry"):
        entry = entity.direct_counter_entry.table_entry
        entry.ClearField("action")
        entry.match.sort(key=lambda match: match.field_id)
    return entity


def _zero(entity: p4r.Entity) -> bool:
    data = entity.counter_entry.data if entity.HasField("counter_entry") else entity.direct_counter_entry.data
    return data.packet_count == 0


def _text(message: p4r.Update | p4r.Entity) -> str:
    return text_format.MessageToString(message, as_one_line=True)
