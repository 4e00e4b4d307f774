# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests with a real cluster of NATS servers, several controllers as processes, and proxies between all of them."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any

import grpc
import pytest
from finsy.proto import p4r

from conftest import ROOT, Switch, new_switch
from frontage.api.client import RequestError, local
from frontage_testbed.natsservers import Node, Servers
from frontage_testbed.ports import reserve_ports

LIMIT = 60.0
"""Seconds, also on a busy machine."""
BUILT = ROOT / "build" / "nats-server"
BINARY = os.environ.get("NATS_SERVER") or (str(BUILT) if BUILT.exists() else shutil.which("nats-server"))
MEMORY = Path("/dev/shm")
"""A file system in memory: on a busy disk, NATS servers wait for seconds, and groups lose their leaders."""
SERVICE = "/p4.v1.P4Runtime/"


class Nats(Servers):
    """Three NATS servers that do not tell clients about each other, so that proxies can stand before them."""

    def __init__(self, folder: Path) -> None:
        if BINARY is None:
            pytest.skip("no nats-server: run `make build/nats-server`, or set NATS_SERVER")
        ports = iter(reserve_ports(9))
        nodes = [Node(f"n{i}", "store", (1,), "127.0.0.1", next(ports), next(ports), next(ports)) for i in range(3)]
        self._memory = tempfile.TemporaryDirectory(prefix="frontage-nats-", dir=MEMORY if MEMORY.is_dir() else None)
        super().__init__(folder, nodes, _run, Path(self._memory.name))

    def _configuration(self, node: Node) -> str:
        return super()._configuration(node).replace("cluster { name:", "cluster { no_advertise: true, name:")


def _run(_: Node, file: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    assert BINARY is not None
    return subprocess.Popen([BINARY, "-c", file], stdout=log, stderr=log, env=os.environ | {"GOMAXPROCS": "1"})


@asynccontextmanager
async def nats_servers(folder: Path) -> AsyncIterator[Nats]:
    servers = Nats(folder)
    servers.start_all()
    try:
        await servers.ready()
        yield servers
    finally:
        servers.stop()


class Link:
    """A TCP connection between a controller and a NATS server, which can be cut: packets then get lost without an error."""

    def __init__(self) -> None:
        self._whole = asyncio.Event()
        self._whole.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""

    @classmethod
    @asynccontextmanager
    async def to(cls, host: str, port: int) -> AsyncIterator[Link]:
        link = cls()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError):
                there, back = await asyncio.open_connection(host, port)
                for task in (link._pump(reader, back), link._pump(there, writer)):
                    link._tasks.add(asyncio.create_task(task))
                return
            writer.close()

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        link.url = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield link
        finally:
            server.close()
            for task in link._tasks:
                task.cancel()

    def cut(self) -> None:
        self._whole.clear()

    def mend(self) -> None:
        self._whole.set()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                await self._whole.wait()
                writer.write(data)
                await writer.drain()
        writer.close()


class Watched:
    """A switch behind a proxy that counts the writes by election id, and can hold them."""

    def __init__(self, folder: Path, name: str):
        folder.mkdir()
        self.switch: Switch = new_switch(folder)
        self.name = name
        self.address = f"unix:{folder}/proxy.sock"
        self.writes: Counter[int] = Counter()
        """Write requests by election id."""
        self.entries: Counter[int] = Counter()
        """Written table entries by election id."""
        self.order: list[str] = []
        """The names of the switches, in the order of write requests, if several switches share this list."""
        self.held = asyncio.Event()
        """Set while a write is held."""
        self._holds: Callable[[], bool] = lambda: False
        self._freed = asyncio.Event()

    def hold(self, when: Callable[[], bool] = lambda: True) -> None:
        """Hold the next writes for which ``when`` is true at their arrival, until `free`."""
        self.held.clear()
        self._freed.clear()
        self._holds = when

    def free(self) -> None:
        """Let held writes pass, as if they had been slow, if their sender still waits."""
        self._holds = lambda: False
        self._freed.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Watched]:
        self.switch.start()
        server = grpc.aio.server(options=_OPTIONS)
        self._channel = grpc.aio.insecure_channel(self.switch.address, options=_OPTIONS)
        server.add_generic_rpc_handlers((_Handler(self),))
        server.add_insecure_port(self.address)
        await server.start()
        try:
            yield self
        finally:
            self.free()
            await server.stop(0)
            await self._channel.close()
            self.switch.stop()

    async def unary(self, method: str, request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        if method.endswith(("/Write", "/SetForwardingPipelineConfig")):
            kind = p4r.WriteRequest if method.endswith("/Write") else p4r.SetForwardingPipelineConfigRequest
            found = kind.FromString(request)
            term = found.election_id.low
            self.writes[term] += 1
            self.order.append(self.name)
            if isinstance(found, p4r.WriteRequest):
                self.entries[term] += sum(update.entity.HasField("table_entry") for update in found.updates)
            if self._holds():
                self.held.set()
                await self._freed.wait()
        try:
            return await self._channel.unary_unary(method)(request)
        except grpc.aio.AioRpcError as error:
            await _abort(context, error)
            raise AssertionError from None

    async def read(self, method: str, request: bytes, context: grpc.aio.ServicerContext) -> AsyncIterator[bytes]:
        try:
            async for response in self._channel.unary_stream(method)(request):
                yield response
        except grpc.aio.AioRpcError as error:
            await _abort(context, error)

    async def stream(self, method: str, requests: Any, context: grpc.aio.ServicerContext) -> AsyncIterator[bytes]:
        call = self._channel.stream_stream(method)()

        async def send() -> None:
            async for request in requests:
                await call.write(request)
            call.cancel()  # the controller is gone

        sending = asyncio.create_task(send())
        try:
            async for response in call:
                yield response
        except grpc.aio.AioRpcError as error:
            await _abort(context, error)
        finally:
            sending.cancel()
            call.cancel()


_OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))


class _Handler(grpc.GenericRpcHandler):
    """Passes on all methods of P4Runtime as bytes."""

    def __init__(self, watched: Watched):
        self._watched = watched

    def service(self, details: Any) -> grpc.RpcMethodHandler | None:
        method, watched = details.method, self._watched
        name = method.removeprefix(SERVICE)

        async def stream(requests: Any, context: grpc.aio.ServicerContext) -> AsyncIterator[bytes]:
            async for response in watched.stream(method, requests, context):
                yield response

        async def read(request: bytes, context: grpc.aio.ServicerContext) -> AsyncIterator[bytes]:
            async for response in watched.read(method, request, context):
                yield response

        async def unary(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
            return await watched.unary(method, request, context)

        if name == "StreamChannel":
            return grpc.stream_stream_rpc_method_handler(stream)
        if name == "Read":
            return grpc.unary_stream_rpc_method_handler(read)
        return grpc.unary_unary_rpc_method_handler(unary)


async def _abort(context: grpc.aio.ServicerContext, error: grpc.aio.AioRpcError) -> None:
    metadata = tuple((key, value) for key, value in error.trailing_metadata() or () if key == "grpc-status-details-bin")
    context.set_trailing_metadata(metadata)
    await context.abort(error.code(), error.details() or "")


class Controller:
    """A controller in a process of its own."""

    def __init__(self, folder: Path, name: str, text: str):
        folder.mkdir()
        self.name = name
        self.file = folder / "site.yaml"
        self.file.write_text(text)
        self.socket = folder / ".site.yaml.sock"
        self.log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            words = [sys.executable, "-m", "frontage", "up", str(self.file), "--name", self.name]
            self._process = subprocess.Popen(words, stdout=log, stderr=log)

    def kill(self) -> None:
        """Kill the process with signal 9."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self.kill()

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        async with local(self.socket, LIMIT) as client:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return (await client.send(method, path, body, headers=named)).body

    async def repeat(self, method: str, path: str, body: Any) -> Any:
        """Send a request until a controller that leads answers: without a leader of the store, none does."""
        async with asyncio.timeout(LIMIT):
            while True:
                try:
                    return await self.send(method, path, body)
                except RequestError as error:
                    if error.status != HTTPStatus.SERVICE_UNAVAILABLE:
                        raise
                await asyncio.sleep(0.2)

    @contextmanager
    def follows_keys(self, certificate: str, server: str, url: str) -> Iterator[Path]:
        """Run `frontage follow-keys` for a server, against this controller, and return its key file."""
        folder, output = self.file.parent, self.file.with_name(f"{server}.toml")
        options = [
            "--server",
            url,
            "--authorities",
            "ca.pem",
            "--certificate",
            f"{certificate}.pem",
            "--key",
            f"{certificate}-key.pem",
        ]
        words = [sys.executable, "-m", "frontage", *options, "follow-keys", server, "-o", output]
        with self.log.open("ab") as log, subprocess.Popen(words, cwd=folder, stdout=log, stderr=log) as process:
            try:
                yield output
            finally:
                process.terminate()

    async def store(self) -> dict[str, Any]:
        """Return the part of the status about the store."""
        found: dict[str, Any] = (await self.send("GET", "/status"))["store"]
        return found


async def eventually(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    try:
        async with asyncio.timeout(LIMIT):
            while True:
                with suppress(RequestError):
                    if await condition():
                        return
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"not within {LIMIT:g} s: {what}") from None


async def leader_of(controllers: list[Controller]) -> Controller:
    """Wait until one of the controllers leads, and return it."""
    found: list[Controller] = []

    async def leads() -> bool:
        for controller in controllers:
            with suppress(RequestError):
                if (await controller.store())["is_leading"]:
                    found.append(controller)
                    return True
        return False

    await eventually(leads, "a leader")
    return found[0]


async def in_sync(controllers: list[Controller]) -> None:
    """Wait until all switches have the configuration, as all controllers see it."""

    async def is_installed() -> bool:
        for controller in controllers:
            status = await controller.send("GET", "/status")
            if any(part.get("difference", {"tables": True})["tables"] for part in status["devices"]):
                return False
            if len(status["store"]["members"]) < len(controllers) or any(one["behind"] for one in status["store"]["members"]):
                return False
        return True

    await eventually(is_installed, "all switches have the configuration")
