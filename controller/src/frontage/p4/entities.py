# SPDX-License-Identifier: Apache-2.0
"""Batched reads and writes of table entries, cells of registers, clone sessions and counters.

This module uses finsy's protobufs and stubs, but not its entity layer: with tens of thousands of entries, one object per entity
would cost more than everything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

import grpc
from finsy.p4client import P4RpcStatus
from finsy.proto import p4r

from frontage.p4 import replication
from frontage.p4.calls import WriteCall, reading
from frontage.p4.entries import Action, Key, State
from frontage.p4.errors import NotLeadingError, UnreachableError, WriteRefusedError, failed
from frontage.p4.p4info import RegisterInfo, Schema, TableInfo
from frontage.p4.shown import shown

BATCH = 2000
"""Updates per write request: about 150 KB, well below the message limit of every server (4 MB by default)."""

TIMEOUT = 30.0
"""Seconds to wait for a response."""


_Decoded: TypeAlias = dict[bytes, tuple[Key, Action]]
"""Entries by their wire format."""


@dataclass(frozen=True, slots=True)
class Count:
    """The value of a counter."""

    packets: int = 0
    bytes: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.packets + other.packets, self.bytes + other.bytes)


class Entities:
    """The entities of one device. Reads need no arbitration; writes need the primary role."""

    def __init__(self, address: str, device_id: int, stub: Any):
        self.address = address
        self.device_id = device_id
        self.election_id = 0
        self.may_write: Callable[[], bool] = lambda: True
        """Returns true while this process may write. Checked before each write, because a lease can expire at any time."""
        self._stub = stub
        self._decoded_with: Schema | None = None
        self._decoded: dict[tuple[int, ...], _Decoded] = {}
        """The entries of the last read of each list of tables. Most entries are the same in the next read, and decoding is slow."""

    def require_lead(self) -> None:
        """Raise NotLeadingError if this process must not write."""
        if not self.may_write():
            raise NotLeadingError(f"this controller is not the leader: nothing was written to {self.address}")

    async def read_tables(self, schema: Schema, tables: Sequence[TableInfo]) -> State:
        """Return all entries of these tables, and the default action of tables without match fields."""
        request = p4r.ReadRequest(device_id=self.device_id)
        for table in tables:
            entry = request.entities.add().table_entry
            entry.CopyFrom(p4r.TableEntry(table_id=table.id, is_default_action=not table.fields))
            if table.direct_meter:
                entry.meter_config.SetInParent()
        state: State = {}
        decode = schema.decoder()
        if self._decoded_with is not schema:
            self._decoded_with, self._decoded = schema, {}
        kind = tuple(table.id for table in tables)
        before: _Decoded = self._decoded.get(kind, {})
        now: _Decoded = {}

        def take(entity: p4r.Entity) -> None:
            data = entity.SerializeToString()
            now[data] = found = before.get(data) or decode(entity.table_entry)
            state[found[0]] = found[1]

        await self._read(request, take)
        self._decoded[kind] = now
        return state

    async def read_registers(self, schema: Schema, registers: Sequence[RegisterInfo]) -> State:
        """Return all cells of these registers that are not zero."""
        state: State = {}
        if not registers:
            return state
        request = p4r.ReadRequest(device_id=self.device_id)
        for register in registers:
            request.entities.add().register_entry.register_id = register.id

        def take(entity: p4r.Entity) -> None:
            if (found := schema.decode_cell(entity.register_entry)) is not None:
                key, action = found
                state[key] = action

        await self._read(request, take)
        return state

    async def read_clone_sessions(self) -> State:
        """Return all clone sessions."""
        request = p4r.ReadRequest(device_id=self.device_id)
        request.entities.add().packet_replication_engine_entry.clone_session_entry.session_id = 0
        state: State = {}

        def take(entity: p4r.Entity) -> None:
            key, action = replication.decode(entity.packet_replication_engine_entry)
            state[key] = action

        await self._read(request, take)
        return state

    async def read_direct_counters(self, schema: Schema, tables: Sequence[TableInfo]) -> dict[Key, Count]:
        """Return the direct counters of these tables, by entry."""
        request = p4r.ReadRequest(device_id=self.device_id)
        for table in tables:
            request.entities.add().direct_counter_entry.table_entry.table_id = table.id
        counts: dict[Key, Count] = {}
        decode = schema.decoder()

        def take(entity: p4r.Entity) -> None:
            entry = entity.direct_counter_entry
            key, _ = decode(entry.table_entry)
            counts[key] = Count(entry.data.packet_count, entry.data.byte_count)

        await self._read(request, take)
        return counts

    async def read_counters(self, counter_ids: Sequence[int]) -> dict[tuple[int, int], Count]:
        """Return all cells of these counters, by (counter id, index)."""
        request = p4r.ReadRequest(device_id=self.device_id)
        for counter_id in counter_ids:
            request.entities.add().counter_entry.counter_id = counter_id
        counts: dict[tuple[int, int], Count] = {}

        def take(entity: p4r.Entity) -> None:
            entry = entity.counter_entry
            counts[entry.counter_id, entry.index.index] = Count(entry.data.packet_count, entry.data.byte_count)

        await self._read(request, take)
        return counts

    async def read_cells(self, counter_id: int, cells: Sequence[int]) -> dict[int, Count]:
        """Return these cells of one counter, by index."""
        counts: dict[int, Count] = {}

        def take(entity: p4r.Entity) -> None:
            entry = entity.counter_entry
            counts[entry.index.index] = Count(entry.data.packet_count, entry.data.byte_count)

        for first in range(0, len(cells), BATCH):
            request = p4r.ReadRequest(device_id=self.device_id)
            for cell in cells[first : first + BATCH]:
                entry = request.entities.add().counter_entry
                entry.counter_id = counter_id
                entry.index.index = cell
            await self._read(request, take)
        return counts

    async def read_register_cells(self, register: RegisterInfo, cells: Sequence[int]) -> dict[int, int]:
        """Return these cells of one register, by index."""
        words: dict[int, int] = {}

        def take(entity: p4r.Entity) -> None:
            entry = entity.register_entry
            words[entry.index.index] = int.from_bytes(entry.data.bitstring, "big")

        for first in range(0, len(cells), BATCH):
            request = p4r.ReadRequest(device_id=self.device_id)
            for cell in cells[first : first + BATCH]:
                entry = request.entities.add().register_entry
                entry.register_id = register.id
                entry.index.index = cell
            await self._read(request, take)
        return words

    async def _read(self, request: p4r.ReadRequest, take: Callable[[p4r.Entity], None]) -> None:
        try:
            with self._open(), reading(self.device_id, len(request.entities)):
                async for response in self._stub.Read(request, timeout=TIMEOUT):
                    for entity in response.entities:
                        take(entity)
                    # Decoding a large table must not block the session's other tasks.
                    await asyncio.sleep(0)
        except grpc.aio.AioRpcError as error:
            raise failed("reading", error) from None

    async def write(self, schema: Schema, kind: int, entries: Iterable[tuple[Key, Action | None]]) -> int:
        """Insert, modify or delete entries, cells and clone sessions in order, in batches, and return their number.

        Raises WriteRefusedError and UnreachableError.
        """
        total = 0
        pending = iter(entries)
        in_flight: WriteCall | None = None
        verb = p4r.Update.Type.Name(kind).lower()  # type: ignore[arg-type]
        sent: list[tuple[Key, Action | None]] = []
        while batch := list(islice(pending, BATCH)):
            request = p4r.WriteRequest(device_id=self.device_id, election_id=uint128(self.election_id))
            for key, action in batch:
                update = request.updates.add(type=kind)
                if key.table == replication.CLONE_SESSION:
                    update.entity.packet_replication_engine_entry.CopyFrom(replication.encode(key, action))
                elif key.table in schema.registers:
                    update.type = p4r.Update.MODIFY
                    update.entity.register_entry.CopyFrom(schema.encode_cell(key, action))
                else:
                    update.entity.table_entry.CopyFrom(schema.encode(key, action))
            # The switch processes one batch while the controller builds the next.
            if in_flight is not None:
                await self._written(in_flight, verb, sent)
            self.require_lead()
            call = self._stub.Write(request, timeout=TIMEOUT)
            in_flight, sent = WriteCall(call, self.device_id, verb, len(batch)), batch
            await asyncio.sleep(0)
            total += len(batch)
        if in_flight is not None:
            await self._written(in_flight, verb, sent)
        return total

    @staticmethod
    async def _written(call: WriteCall, verb: str, batch: Sequence[tuple[Key, Action | None]]) -> None:
        try:
            await call.result()
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.UNAVAILABLE:
                raise failed("writing", error) from None
            status = P4RpcStatus.from_rpc_error(error)
            lines = []
            for index, detail in list(status.details.items())[:5]:
                lines.append(f"{verb} {shown(*batch[index])}: {detail.canonical_code.name}: {detail.message}")
            more = len(status.details) - len(lines)
            text = "; ".join(lines) or f"{verb} of {len(batch)} entries: {status.code.name}: {status.message}"
            raise WriteRefusedError(f"the switch refused: {text}" + (f"; and {more} more" if more > 0 else "")) from None

    @contextmanager
    def _open(self) -> Iterator[None]:
        """Raise UnreachableError if another task closes the session during a call, which gRPC reports as a cancellation."""
        try:
            yield
        except (asyncio.CancelledError, asyncio.InvalidStateError, grpc.aio.UsageError):
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise UnreachableError(f"the connection to the switch at {self.address} ended") from None


def uint128(value: int) -> p4r.Uint128:
    return p4r.Uint128(high=value >> 64, low=value & (1 << 64) - 1)
