"""A session with a P4Runtime server: arbitration, pipeline, batched reads and writes, packet-out.

Below finsy's entity layer on purpose: with tens of thousands of entries its per-entity objects would cost more than all of
the rest. Its protobufs and generated stubs are used as they are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from types import TracebackType
from typing import Any, Self

import grpc
from finsy.grpcutil import GRPC_EOF
from finsy.p4client import P4RpcStatus
from finsy.proto import p4r, p4r_grpc, rpc_code

from frontage import learning, replication
from frontage.learning import Learned
from frontage.p4info import Pipeline, Schema, TableInfo
from frontage.state import Action, Key, State

log = logging.getLogger(__name__)

BATCH = 2000
"""Updates a write request: some 150 KB, far below every server's limit on messages (4 MB by default)."""

_TIMEOUT = 30.0
_PIPELINE_TIMEOUT = 120.0
_CHANNEL_OPTIONS = (
    # Servers answer a read of everything in one message.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_metadata_size", 64 * 1024),
    # The controller has its own back-off; within an attempt, be quick.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    # A new channel must not inherit another's connection, nor its back-off.
    ("grpc.use_local_subchannel_pool", 1),
)


class SwitchError(Exception):
    """The switch refused a request or cannot be reached; the text says which request, of what, and why."""


class UnreachableError(SwitchError):
    """There is no connection to the switch (any more)."""


class ElectionIdInUseError(SwitchError):
    """Another controller has this very election id."""


class WriteRefusedError(SwitchError):
    """The switch refused updates."""


class Role(Enum):
    PRIMARY = "primary"
    BACKUP = "backup"
    NO_PRIMARY = "no primary"
    """A backup, while nobody is primary."""


@dataclass(frozen=True, slots=True)
class Arbitration:
    role: Role
    election_id: int
    """The largest that the switch knows of."""


@dataclass(frozen=True, slots=True)
class Count:
    packets: int = 0
    bytes: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.packets + other.packets, self.bytes + other.bytes)


class Session:
    """One connection to one device. Reads need no arbitration; writes need the primary's role."""

    def __init__(self, address: str, device_id: int):
        self.address = address
        self.device_id = device_id
        self.election_id = 0
        self.channel = grpc.aio.insecure_channel(address, options=_CHANNEL_OPTIONS)
        self._stub: Any = p4r_grpc.P4RuntimeStub(self.channel)
        self._stream: Any = None
        self._schema: Schema | None = None
        """Of the program whose digests are heard."""
        self._learned = Learned()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        if self._stream is not None:
            self._stream.cancel()
        await self.channel.close(None)

    async def connect(self, seconds: float) -> None:
        """Wait until the switch accepts connections. Raises UnreachableError."""
        try:
            async with asyncio.timeout(seconds):
                await self.channel.channel_ready()
        except TimeoutError:
            raise UnreachableError(
                f"no P4Runtime server answers at {self.address}; start the switch or correct device.address"
            ) from None

    async def arbitrate(self, election_id: int) -> None:
        """Offer this election id; the answer comes from `arbitrations`."""
        if self._stream is None:
            self._stream = self._stub.StreamChannel()
        self.election_id = election_id
        request = p4r.StreamMessageRequest()
        request.arbitration.device_id = self.device_id
        request.arbitration.election_id.CopyFrom(_uint128(election_id))
        await self._send(request)

    async def arbitrations(self) -> AsyncIterator[Arbitration]:
        """Every change of roles, until the connection ends with UnreachableError or ElectionIdInUseError."""
        assert self._stream is not None, "arbitrate first"
        while True:
            try:
                message = await self._stream.read()
            except grpc.RpcError as error:
                raise _stream_error(self, error) from None
            if message is GRPC_EOF:
                code = await self._stream.code()
                details = str(await self._stream.details() or "")
                if code == grpc.StatusCode.INVALID_ARGUMENT:
                    raise ElectionIdInUseError(f"the switch refused election id {self.election_id}: {details}")
                raise UnreachableError(f"the switch at {self.address} ended the connection: {code} {details}".rstrip())
            kind = message.WhichOneof("update")
            if kind == "arbitration":
                yield _arbitration(message.arbitration)
            elif kind == "digest" and self._schema is not None:
                self._learned.add(self._schema, message.digest)
            elif kind == "error":
                log.warning("the switch reports: %s", message.error.message or message.error)

    async def packet_out(self, packets: Iterable[p4r.PacketOut]) -> None:
        """Send packets into the pipeline, in order."""
        for packet in packets:
            await self._send(p4r.StreamMessageRequest(packet=packet))

    async def learn(self, schema: Schema) -> None:
        """Have the switch tell of what the program's digests are about; `take_learned` has it. Raises SwitchError."""
        self._schema = schema
        for digest_id in schema.digests_by_id:
            request = p4r.WriteRequest(device_id=self.device_id, election_id=_uint128(self.election_id))
            request.updates.add(type=p4r.Update.INSERT).entity.digest_entry.CopyFrom(learning.entry(digest_id))
            try:
                await self._stub.Write(request, timeout=_TIMEOUT)
            except grpc.aio.AioRpcError as error:
                details = P4RpcStatus.from_rpc_error(error).details.values()
                # It does so already, for an earlier controller.
                if not details or any(one.canonical_code.value != rpc_code.ALREADY_EXISTS for one in details):
                    raise _error("turning on a digest", error) from None

    def take_learned(self) -> Learned:
        """What the switch has told since this was last asked."""
        found, self._learned = self._learned, Learned()
        return found

    async def acknowledge(self, learned: Learned) -> None:
        """From now on the switch tells of the same things again. Raises UnreachableError."""
        for digest_id, list_id in learned.lists:
            ack = p4r.DigestListAck(digest_id=digest_id, list_id=list_id)
            await self._send(p4r.StreamMessageRequest(digest_ack=ack))

    async def _send(self, request: p4r.StreamMessageRequest) -> None:
        with self._open():
            try:
                await self._stream.write(request)
            except grpc.RpcError as error:
                raise _stream_error(self, error) from None

    @contextmanager
    def _open(self) -> Iterator[None]:
        """Somebody may call while another closes the session: gRPC then cancels the caller, who was not to end."""
        try:
            yield
        except (asyncio.CancelledError, asyncio.InvalidStateError, grpc.aio.UsageError):
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise UnreachableError(f"the connection to the switch at {self.address} ended") from None

    async def installed_pipeline(self, seconds: float = _TIMEOUT) -> int | None:
        """The cookie of the switch's pipeline; None where it has no pipeline. Raises UnreachableError if none answers in time."""
        request = p4r.GetForwardingPipelineConfigRequest(
            device_id=self.device_id, response_type=p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY
        )
        try:
            response = await self._stub.GetForwardingPipelineConfig(request, timeout=seconds)
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.FAILED_PRECONDITION:
                return None
            raise _error("reading the pipeline's cookie", error) from None
        return int(response.config.cookie.cookie)

    async def take(self, pipeline: Pipeline, seconds: float) -> None:
        """Take a switch that no controller has yet: connect in this time, become primary and set the pipeline.

        Raises UnreachableError; ElectionIdInUseError or another SwitchError if there is a controller; SwitchError if the switch
        refuses the pipeline.
        """
        await self.connect(seconds)
        await self.arbitrate(1)
        arbitration = await anext(self.arbitrations())
        if arbitration.role is not Role.PRIMARY:
            raise SwitchError(f"the switch at {self.address} has another controller as its primary; stop that one")
        await self.set_pipeline(pipeline)

    async def set_pipeline(self, pipeline: Pipeline) -> None:
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            election_id=_uint128(self.election_id),
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=pipeline.forwarding_config(),
        )
        try:
            await self._stub.SetForwardingPipelineConfig(request, timeout=_PIPELINE_TIMEOUT)
        except grpc.aio.AioRpcError as error:
            raise _error("setting the pipeline", error) from None

    async def read_tables(self, schema: Schema, tables: Sequence[TableInfo]) -> State:
        """All entries of these tables, and the default action of those that have no key."""
        request = p4r.ReadRequest(device_id=self.device_id)
        for table in tables:
            request.entities.add().table_entry.CopyFrom(p4r.TableEntry(table_id=table.id, is_default_action=not table.fields))
        state: State = {}
        decode = schema.decoder()

        def take(entity: p4r.Entity) -> None:
            key, action = decode(entity.table_entry)
            state[key] = action

        await self._read(request, take)
        return state

    async def read_clone_sessions(self) -> State:
        """The program's clone sessions, as `replication` writes them."""
        request = p4r.ReadRequest(device_id=self.device_id)
        request.entities.add().packet_replication_engine_entry.clone_session_entry.session_id = 0
        state: State = {}

        def take(entity: p4r.Entity) -> None:
            key, action = replication.decode(entity.packet_replication_engine_entry)
            state[key] = action

        await self._read(request, take)
        return state

    async def read_direct_counters(self, schema: Schema, tables: Sequence[TableInfo]) -> dict[Key, Count]:
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
        """By (counter id, index)."""
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
        """Of one counter, by index."""
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
                async for response in self._stub.Read(request, timeout=_TIMEOUT):
                    for entity in response.entities:
                        take(entity)
                    # Decoding a large table must not hold up the session's other tasks.
                    await asyncio.sleep(0)
        except grpc.aio.AioRpcError as error:
            raise _error("reading", error) from None

    async def write(self, schema: Schema, kind: int, entries: Iterable[tuple[Key, Action | None]]) -> int:
        """Insert, modify or delete entries and clone sessions in batches, in order; returns how many. Raises WriteRefusedError,
        UnreachableError."""
        total = 0
        pending = iter(entries)
        in_flight: Awaitable[object] | None = None
        sent: list[tuple[Key, Action | None]] = []
        while batch := list(islice(pending, BATCH)):
            request = p4r.WriteRequest(device_id=self.device_id, election_id=_uint128(self.election_id))
            for key, action in batch:
                entity = request.updates.add(type=kind).entity
                if key.table == replication.CLONE_SESSION:
                    entity.packet_replication_engine_entry.CopyFrom(replication.encode(key, action))
                else:
                    entity.table_entry.CopyFrom(schema.encode(key, action))
            # The switch works on one batch while the next is being built.
            if in_flight is not None:
                await self._written(in_flight, kind, sent)
            in_flight, sent = self._stub.Write(request, timeout=_TIMEOUT), batch
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
                raise _error("writing", error) from None
            status = P4RpcStatus.from_rpc_error(error)
            lines = []
            for index, detail in list(status.details.items())[:5]:
                key, action = batch[index]
                shown = f"{key.table}{list(key.match)}" + (f" -> {action.name}{list(action.params)}" if action else "")
                lines.append(f"{verb} {shown}: {detail.canonical_code.name}: {detail.message}")
            more = len(status.details) - len(lines)
            text = "; ".join(lines) or f"{verb} of {len(batch)} entries: {status.code.name}: {status.message}"
            raise WriteRefusedError(f"the switch refused: {text}" + (f"; and {more} more" if more > 0 else "")) from None


def _uint128(value: int) -> p4r.Uint128:
    return p4r.Uint128(high=value >> 64, low=value & (1 << 64) - 1)


def _arbitration(message: p4r.MasterArbitrationUpdate) -> Arbitration:
    roles = {rpc_code.OK: Role.PRIMARY, rpc_code.NOT_FOUND: Role.NO_PRIMARY}
    role = roles.get(message.status.code, Role.BACKUP)  # type: ignore[call-overload]
    return Arbitration(role, message.election_id.high << 64 | message.election_id.low)


def _error(doing: str, error: grpc.aio.AioRpcError) -> SwitchError:
    text = f"{doing}: {error.code().name}: {error.details()}"
    lost = error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED)
    return UnreachableError(text) if lost else SwitchError(text)


def _stream_error(session: Session, error: grpc.RpcError) -> SwitchError:
    if isinstance(error, grpc.aio.AioRpcError):
        if error.code() == grpc.StatusCode.INVALID_ARGUMENT:
            return ElectionIdInUseError(f"the switch refused election id {session.election_id}: {error.details()}")
        return UnreachableError(f"the switch at {session.address} ended the connection: {error.code().name}: {error.details()}")
    return UnreachableError(f"the connection to the switch at {session.address} ended: {error}")
