# SPDX-License-Identifier: Apache-2.0
"""A switch under test: its P4Runtime server, and packets over gRPC, in batches that end when all packets are processed."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
import sys
import tempfile
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from finsy.p4client import P4RpcStatus
from finsy.proto import p4r, p4r_grpc

from frontage.p4.errors import SwitchError
from frontage.p4.p4info import Pipeline
from frontage.p4.session import Session
from tools import ROOT

# grpc searches sys.path.
sys.path.append(str(ROOT / "softswitch" / "switch" / "proto" / "p4" / "bm"))
_messages, _services = grpc.protos_and_services("dataplane_interface.proto")

_CONNECT = 20.0
_TIMEOUT = 60.0
_SILENCE = 120.0
"""Seconds to wait for an answer; generous, for a switch that recirculates on a busy machine."""

_OPTIONS = (("grpc.use_local_subchannel_pool", 1),)

Packet = tuple[int, bytes]
"""A port and a frame."""


class TargetError(Exception):
    """The switch did not start, has exited, or does not answer."""


@dataclass(frozen=True)
class Target:
    """A switch with P4Runtime and BMv2's packet service."""

    name: str
    binary: Path
    before: tuple[str, ...] = ()
    """Arguments in front of the servers' addresses."""
    pipeline: Pipeline | None = None
    """The program to run instead of the round's, from another compiler."""
    log: Path | None = None
    """The file that gets the switch's output; without it, the output is in error messages only."""

    @contextlib.asynccontextmanager
    async def running(self, pipeline: Pipeline) -> AsyncIterator[Running]:
        """Start the switch with this program."""
        control, data = _free_port(), _free_port()
        servers = ["--grpc-server-addr", f"127.0.0.1:{control}", "--dp-grpc-server-addr", f"127.0.0.1:{data}"]
        # BMv2 names files after the device, so each switch needs a unique id. It may also serve Thrift, at port 9090 by default.
        own = ["--device-id", str(control), "--thrift-port", str(_free_port())]
        command = [str(self.binary), *own, *self.before, *servers]
        with tempfile.TemporaryDirectory(prefix="frontage-conformance-") as folder:
            log = self.log or Path(folder) / "log"
            with log.open("wb") as output:
                process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=output, stderr=output, cwd=folder)
            try:
                async with (
                    Session(f"127.0.0.1:{control}", control) as session,
                    grpc.aio.insecure_channel(f"127.0.0.1:{data}", options=_OPTIONS) as channel,
                ):
                    await session.take(self.pipeline or pipeline, _CONNECT)
                    await asyncio.wait_for(channel.channel_ready(), _CONNECT)
                    running = Running(session, channel)
                    await asyncio.wait_for(running.ready(), _CONNECT)
                    yield running
            except (SwitchError, TimeoutError, grpc.aio.AioRpcError) as error:
                said = log.read_text(errors="replace")[-500:]
                ended = "" if process.returncode is None else f"; it ended with status {process.returncode}"
                reason = str(error) or "no reply in time"
                raise TargetError(f"{self.name}: {reason}{ended}\n{said}".rstrip()) from error
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()


class Running:
    def __init__(self, session: Session, data: grpc.aio.Channel):
        self.session = session
        self.control: Any = p4r_grpc.P4RuntimeStub(session.channel)
        self._data: Any = _services.DataplaneInterfaceStub(data)

    async def write(self, updates: Sequence[p4r.Update]) -> dict[int, str]:
        """Send one request; return the errors of refused updates, by position."""
        election_id = p4r.Uint128(low=self.session.election_id)
        request = p4r.WriteRequest(device_id=self.session.device_id, election_id=election_id, updates=updates)
        try:
            await self.control.Write(request, timeout=_TIMEOUT)
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.UNAVAILABLE:
                raise
            details = P4RpcStatus.from_rpc_error(error).details
            if not details:
                return dict.fromkeys(range(len(updates)), f"{error.code().name}: {error.details()}")
            return {index: f"{detail.canonical_code.name}: {detail.message}" for index, detail in details.items()}
        return {}

    async def read(self, *entities: p4r.Entity) -> list[p4r.Entity]:
        request = p4r.ReadRequest(device_id=self.session.device_id, entities=entities)
        return [entity async for response in self.control.Read(request, timeout=_TIMEOUT) for entity in response.entities]

    async def ready(self) -> None:
        """Wait until the switch accepts packets; BMv2 accepts connections earlier."""
        while True:
            try:
                await self.packets([])
            except grpc.aio.AioRpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE:
                    raise
                await asyncio.sleep(0.02)
            else:
                return

    async def packets(self, packets: Iterable[Packet]) -> list[list[Packet]]:
        """Send these packets in order, and return the resulting packets of each."""
        batch = list(packets)
        device = self.session.device_id

        async def requests() -> AsyncIterator[Any]:
            for number, (port, frame) in enumerate(batch, 1):
                yield _messages.PacketStreamRequest(id=number, device_id=device, port=port, packet=frame)

        left: list[list[Packet]] = [[] for _ in batch]
        now = asyncio.get_running_loop().time
        async with asyncio.timeout_at(now() + _SILENCE) as silence:
            async for response in self._data.PacketStream(requests()):
                left[response.id - 1].append((response.port, response.packet))
                silence.reschedule(now() + _SILENCE)
        return left


# Outside the ports that the kernel gives to connections, which could take a port before the switch does. Concurrent runs
# begin at different ports.
_PORTS = range(20_000, 32_000)
_next_port = itertools.count(os.getpid() * 97)


def _free_port() -> int:
    for number in itertools.islice(_next_port, len(_PORTS)):
        port = _PORTS[number % len(_PORTS)]
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            return port
    raise TargetError(f"no free port from {_PORTS.start} to {_PORTS.stop - 1}: end other switches")
