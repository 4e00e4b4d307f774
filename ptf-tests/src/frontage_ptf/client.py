# SPDX-License-Identifier: Apache-2.0
"""A small synchronous P4Runtime client that uses the names of a P4Info file."""

import itertools
import queue
import re
import threading
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import finsy as fy
import grpc
from finsy.proto import p4i, p4r, p4r_grpc, rpc_status
from google.protobuf import text_format

DEVICE_ID = 0
ELECTIONS = itertools.count(100, 100)
TEST_TIMEOUT = 10.0  # seconds after which a test gives up


class WriteRefusedError(Exception):
    """The target rejected a Write; `codes` holds one canonical gRPC code per update, in order (P4Runtime, 12.3)."""

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


def _without_pipes(p4info: str) -> str:
    """Return a P4Info in which objects have the names that they have in a program for one pipe."""
    # These blocks of egress take part of what ingress does elsewhere. Trees are in egress everywhere.
    p4info = re.sub(r'"(?:edge\.Inner|core\.Site|scheduling\.Tunnels)Egress\.(?!tree_worker)', '"FrontageIngress.', p4info)
    names = r'"(?:gate\.Gate|gate\.Edge|edge\.Edge|core\.Core|core\.Site|scheduling\.Scheduling)(Ingress|Egress)\.'
    return re.sub(names, r'"Frontage\1.', p4info)


class Program:
    """A compiled P4 program: BMv2 JSON and P4Info."""

    @classmethod
    @cache
    def read(cls, build: Path, name: str) -> "Program":
        """Return a program, which is read once for all tests."""
        return cls(build, name)

    def __init__(self, build: Path, name: str):
        self.json = (build / f"{name}.json").read_bytes()
        p4info = (build / f"{name}.p4info.txtpb").read_text()
        self.p4info = text_format.Parse(p4info, p4i.P4Info())
        self.schema = fy.P4Schema(text_format.Parse(_without_pipes(p4info), p4i.P4Info()))
        self.registers = frozenset(register.name for register in self.schema.registers)

    @property
    def follows_long_extensions(self) -> bool:
        """Whether the parser follows IPv6 extension headers of up to 64 bytes together, not only two of 8 bytes."""
        return self.schema.arch == "v1model"

    @property
    def walks_options(self) -> bool:
        """Whether the parser finds timestamps behind any options, not only in the layouts of operating systems in use."""
        return not any(state in self.json for state in (b"tcp_option4", b"mss_word"))  # states of parsers that know a few layouts

    @property
    def drop_counters(self) -> list[str]:
        """The counters of drops in ingress: one for each pipe that a packet passes."""
        return [counter.name for counter in self.schema.counters if re.fullmatch(r"FrontageIngress\.(\w+_)?drops", counter.name)]

    def control(self, name: str) -> str | None:
        """Return the full name of a control in ingress or egress; None if no table, register or counter belongs to it."""
        objects = (*self.schema.tables, *self.schema.registers, *self.schema.counters)
        names = (f"FrontageIngress.{name}.", f"FrontageEgress.{name}.")
        return next((found for found in names if any(thing.name.startswith(found) for thing in objects)), None)

    @property
    def tree_levels(self) -> int:
        """Levels of the tournament trees above the leaves."""
        levels = (re.search(r"\.level(\d+)\.", register.name) for register in self.schema.registers)
        return max((int(level[1]) for level in levels if level), default=0)


class Client:
    """A P4Runtime session as the primary controller. `received` queues the messages of the stream."""

    def __init__(self, address: str, program: Program, election_id: int | None = None):
        """Without an election id, each session gets a higher one than all before, because targets remember them."""
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
        """Send an arbitration update; return the status code, which is 0 for the primary."""
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
            pass  # closed: next_message names the missing message

    def next_message(self, kind: str, seconds: float = TEST_TIMEOUT) -> p4r.StreamMessageResponse:
        """Return the next message of `kind` on the stream, and discard others before it."""
        end = time.monotonic() + seconds
        while True:
            try:
                message = self.received.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no {kind} on the P4Runtime stream within {seconds} s") from None
            if message.WhichOneof("update") == kind:
                return message

    def install_program(self) -> None:
        """Push program and P4Info, which also clears all tables, registers and counters."""
        config = p4r.ForwardingPipelineConfig(p4info=self.program.p4info, p4_device_config=self.program.json)
        self.stub.SetForwardingPipelineConfig(
            p4r.SetForwardingPipelineConfigRequest(
                device_id=DEVICE_ID,
                election_id=self.election_id,
                action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
                config=config,
            )
        )

    def write(self, *updates: Any) -> None:
        """Write finsy's entities (`+` insert, `~` modify, `-` delete) or encoded updates in one request."""
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
        """Send packet-outs or digest acknowledgements on the stream."""
        encoded: list[Any] = fy.p4entity.encode_updates(requests, self.schema)
        for request in encoded:
            self._outgoing.put(request)

    def counter(self, name: str) -> dict[int, int]:
        """Return the packets of all non-zero cells of an indirect counter, by index."""
        cells = self.read(fy.P4CounterEntry(name))
        return {cell.index: cell.packet_count for cell in cells if cell.packet_count}

    def entry(self, table: str, match: dict[str, Any] | None, action: str, **params: Any) -> fy.P4TableEntry:
        """Return an entry of `table`, by its full name in P4Info and the last part of the action's name. Without a
        match, it is the default."""
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
