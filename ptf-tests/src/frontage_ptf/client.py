"""A small synchronous P4Runtime client that speaks in the names of a P4Info file."""

import itertools
import queue
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import finsy as fy
import grpc
from finsy.proto import p4r, p4r_grpc, rpc_status

DEVICE_ID = 0
ELECTIONS = itertools.count(100, 100)
LIMIT = 10.0  # seconds that anything may take before a test gives up


class WriteRefusedError(Exception):
    """The target refused a Write; `codes` holds one canonical gRPC code an update, in order (P4Runtime, 12.3)."""

    def __init__(self, error: grpc.RpcError):
        self.codes = _codes(error)
        super().__init__(f"{[code.name for code in self.codes]}: {error.details()}")


def _codes(error: grpc.RpcError) -> list[grpc.StatusCode]:
    by_number = {code.value[0]: code for code in grpc.StatusCode}
    trailers: Iterable[tuple[str, bytes]] = error.trailing_metadata() or ()  # type: ignore[assignment]
    for key, value in trailers:
        if key == "grpc-status-details-bin":
            status = rpc_status.Status.FromString(value)
            codes = []
            for detail in status.details:
                one = p4r.Error()
                detail.Unpack(one)
                codes.append(by_number[one.canonical_code])
            if codes:
                return codes
    return [error.code()]


class Program:
    """A compiled P4 program: BMv2 JSON and P4Info."""

    def __init__(self, build: Path, name: str):
        self.json = (build / f"{name}.json").read_bytes()
        self.schema = fy.P4Schema(build / f"{name}.p4info.txtpb")


class Client:
    """One P4Runtime session as the primary controller. What the target sends on the stream waits in `received`."""

    def __init__(self, address: str, program: Program, election_id: int | None = None):
        """Unless it is given an election id, each session's is higher than those before it, for a target does not forget them."""
        self.program = program
        self.schema = program.schema
        self.received: queue.Queue[p4r.StreamMessageResponse] = queue.Queue()
        self._outgoing: queue.Queue[p4r.StreamMessageRequest | None] = queue.Queue()
        self._channel = grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", -1)])
        self.stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._stream = self.stub.StreamChannel(iter(self._outgoing.get, None))
        threading.Thread(target=self._read_stream, daemon=True).start()
        self.arbitrate(next(ELECTIONS) if election_id is None else election_id)

    def arbitrate(self, election_id: int) -> int:
        """Stands for election; the answer's code is 0 for the primary."""
        self.election_id = p4r.Uint128(low=election_id)
        arbitration = p4r.MasterArbitrationUpdate(device_id=DEVICE_ID, election_id=self.election_id)
        self._outgoing.put(p4r.StreamMessageRequest(arbitration=arbitration))
        self.elected = int(self.next_message("arbitration").arbitration.status.code)
        return self.elected

    def _read_stream(self) -> None:
        try:
            for message in self._stream:
                self.received.put(message)
        except grpc.RpcError:
            pass  # closed: whoever waits for a message says what is missing

    def next_message(self, kind: str, seconds: float = LIMIT) -> p4r.StreamMessageResponse:
        """The next message of `kind` on the stream; others before it are dropped."""
        end = time.monotonic() + seconds
        while True:
            try:
                message = self.received.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no {kind} on the P4Runtime stream within {seconds} s") from None
            if message.WhichOneof("update") == kind:
                return message

    def install_program(self) -> None:
        """Pushes program and P4Info, which also empties every table, register and counter."""
        config = p4r.ForwardingPipelineConfig(p4info=self.schema.p4info, p4_device_config=self.program.json)
        self.stub.SetForwardingPipelineConfig(
            p4r.SetForwardingPipelineConfigRequest(
                device_id=DEVICE_ID,
                election_id=self.election_id,
                action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
                config=config,
            )
        )

    def write(self, *updates: Any) -> None:
        """Writes finsy's entities (`+` insert, `~` modify, `-` delete) or ready updates, all in one request."""
        encoded: list[Any] = fy.p4entity.encode_updates(updates, self.schema)
        self.write_raw(encoded)

    def write_raw(self, updates: Iterable[p4r.Update]) -> None:
        request = p4r.WriteRequest(device_id=DEVICE_ID, election_id=self.election_id, updates=updates)
        try:
            self.stub.Write(request)
        except grpc.RpcError as error:
            raise WriteRefusedError(error) from error

    def read(self, *entities: Any) -> list[Any]:
        return [fy.p4entity.decode_entity(entity, self.schema) for entity in self.read_raw(*entities)]

    def read_raw(self, *entities: Any) -> Iterator[p4r.Entity]:
        encoded = fy.p4entity.encode_entities(entities, self.schema)
        for response in self.stub.Read(p4r.ReadRequest(device_id=DEVICE_ID, entities=encoded)):
            yield from response.entities

    def send(self, *requests: Any) -> None:
        """Sends on the stream: packets out, digest acknowledgements."""
        encoded: list[Any] = fy.p4entity.encode_updates(requests, self.schema)
        for request in encoded:
            self._outgoing.put(request)

    def counter(self, name: str) -> dict[int, int]:
        """Packets of each cell of an indirect counter that is not zero."""
        cells = self.read(fy.P4CounterEntry(name))
        return {cell.index: cell.packet_count for cell in cells if cell.packet_count}

    def entry(self, table: str, match: dict[str, Any] | None, action: str, **params: Any) -> fy.P4TableEntry:
        """An entry of `table`, by the P4Info's full table name and the last part of an action's name. No match: the default."""
        for known in self.schema.tables[table].actions:
            if known.name.rpartition(".")[2] == action:
                call = fy.P4TableAction(known.name, **params)
                if match is None:
                    return fy.P4TableEntry(table, action=call, is_default_action=True)
                return fy.P4TableEntry(table, match=fy.P4TableMatch(match), action=call)
        raise KeyError(f"table {table} has no action {action}")

    def close(self) -> None:
        self._outgoing.put(None)
        self._stream.cancel()  # type: ignore[no-untyped-call]
        self._channel.close()
