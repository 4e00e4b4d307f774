# SPDX-License-Identifier: Apache-2.0
"""Batched reads and writes of table entries, clone sessions and counters.

This module uses finsy's protobufs and stubs, but not its entity layer: with tens of thousands of entries, one object per entity
would cost more than everything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import grpc
from finsy.p4client import P4RpcStatus
from finsy.proto import p4r

from frontage.p4 import replication
from frontage.p4.entries import Action, Key, State
from frontage.p4.errors import UnreachableError, WriteRefusedError, failed
from frontage.p4.p4info import Schema, TableInfo

BATCH = 2000
"""Updates per write request: about 150 KB, well below the message limit of every server (4 MB by default)."""

TIMEOUT = 30.0
"""Seconds to wait for a response."""


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
        self._stub = stub

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

        def take(entity: p4r.Entity) -> None:
            key, action = decode(entity.table_entry)
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

    async def _read(self, request: p4r.ReadRequest, take: Callable[[p4r.Entity], None]) -> None:
        try:
            with self._open():
                async for response in self._stub.Read(request, timeout=TIMEOUT):
                    for entity in response.entities:
                        take(entity)
                    # Decoding a large table must not block the session's other tasks.
                    await asyncio.sleep(0)
        except grpc.aio.AioRpcError as error:
            raise failed("reading", error) from None

    async def write(self, schema: Schema, kind: int, entries: Iterable[tuple[Key, Action | None]]) -> int:
        """Insert, modify or delete entries and clone sessions in order, in batches, and return their number.

        Raises WriteRefusedError and UnreachableError.
        """
        total = 0
        pending = iter(entries)
        in_flight: Awaitable[object] | None = None
        sent: list[tuple[Key, Action | None]] = []
        while batch := list(islice(pending, BATCH)):
            request = p4r.WriteRequest(device_id=self.device_id, election_id=uint128(self.election_id))
            for key, action in batch:
                entity = request.updates.add(type=kind).entity
                if key.table == replication.CLONE_SESSION:
                    entity.packet_replication_engine_entry.CopyFrom(replication.encode(key, action))
                else:
                    entity.table_entry.CopyFrom(schema.encode(key, action))
            # The switch processes one batch while the controller builds the next.
            if in_flight is not None:
                await self._written(in_flight, kind, sent)
            in_flight, sent = self._stub.Write(request, timeout=TIMEOUT), batch
            await asyncio.sleep(0)
            total += len(batch)
        if in_flight is not None:
            await self._written(in_flight, kind, sent)
        return total

    @staticmethod
    async def _written(call: Awaitable[object], kind: int, batch: Sequence[tuple[Key, Action | None]]) -> None:
        verb = p4r.Update.Type.Name(kind).lower()  # type: ignore[arg-type]
        try:
            await call
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.UNAVAILABLE:
                raise failed("writing", error) from None
            status = P4RpcStatus.from_rpc_error(error)
            lines = []
            for index, detail in list(status.details.items())[:5]:
                key, action = batch[index]
                shown = f"{key.table}{list(key.match)}" + (f" -> {action.name}{list(action.params)}" if action else "")
                lines.append(f"{verb} {shown}: {detail.canonical_code.name}: {detail.message}")
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
