# SPDX-License-Identifier: Apache-2.0
"""Core time of health checks, and the time until softswitch has a change of a server's health.

The servers are on the loopback interface, so the core time of the prober also has the kernel's work for the servers. Run it
with `unshare --net`.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
import statistics
import subprocess
import time
from pathlib import Path

from frontage.checks.messages import Ping, Target, encode_order
from frontage.checks.process import ProberProcess
from frontage.checks.servers import ServerChecks, Verdict
from frontage.config import Config, loads
from frontage.config.syn_defence import SynMode
from frontage.config.vips import ServerState
from frontage.service.controller import Controller
from paths import P4
from rows import Row, finish, row
from sites import CPU_PORT
from switches import softswitch

SERVER, SOURCE = "127.0.0.1", "127.0.0.2"
PORTS = {"tcp": 8080, "http": 8081}
TCP_CHECKS, HTTP_CHECKS = 4096, 512
"""Checks each second: the interval of every server is 1 s."""
WARM_UP, SECONDS = 3.0, 10.0
SERVERS, VIPS, CHANGES = 4096, (1, 16), 10
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def accept() -> None:
    """Accept TCP connections, with as little work as possible."""
    with socket.create_server((SERVER, PORTS["tcp"]), backlog=4096) as listener:
        while True:
            listener.accept()[0].close()


def respond() -> None:
    """Respond to HTTP requests."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if await reader.read(4096):
                writer.write(RESPONSE)
            await reader.read(1)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(serve, SERVER, PORTS["http"], backlog=4096)
        await server.serve_forever()

    asyncio.run(run())


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(kind: str, count: int) -> list[Row]:
    """Check ``count`` servers each second."""
    targets = [
        Target(id=sid, kind=kind, source=SOURCE, sid=sid, address=SERVER, port=PORTS[kind], interval=1.0, timeout=0.9, jitter=0.1)
        for sid in range(count)
    ]
    servers = {sid: ServerChecks(2, 3, since=0.0) for sid in range(count)}
    passed = failed = 0
    async with ProberProcess() as process:
        pid = process.pid
        assert pid is not None
        process.order(encode_order(targets, [Ping(SOURCE, SERVER)]))
        began = time.monotonic()
        start: tuple[float, float, float] | None = None
        async for report in process.reports(10.0):
            now = time.monotonic()
            if start is None and now >= began + WARM_UP:
                start = now, cpu_seconds(pid), time.process_time()
            for result in report.results:
                servers[result.id].observe(result.end, result.verdict, result.error)
                if start is not None:
                    passed += result.verdict is Verdict.PASSED
                    failed += result.verdict is not Verdict.PASSED
            if start is not None and now >= start[0] + SECONDS:
                seconds = now - start[0]
                prober, controller = cpu_seconds(pid) - start[1], time.process_time() - start[2]
                break
    if failed > passed / 100:
        raise RuntimeError(f"{failed} of {passed + failed} checks failed: run it on an idle machine")
    return [
        row(f"health_{kind}_checks_per_second", passed / seconds, "checks/s"),
        row(f"health_{kind}_prober", 100 * prober / seconds, "% of a core"),
        row(f"health_{kind}_controller", 100 * controller / seconds, "% of a core"),
    ]


def site(address: str, vips: int) -> Config:
    """Return services with 4,096 servers together."""
    program = f"p4info: {P4}/frontage.p4info.txtpb, json: {P4}/frontage.json"
    ports = "ports: [{id: 1, name: rack, role: server, mac: '02:00:00:00:01:01'}]"
    lines = [
        f"device: {{address: '{address}', cpu_port: {CPU_PORT}, pipeline: {{{program}}}}}",
        ports,
        "routes: [{prefix: 10.0.0.0/8, port: rack, mac: '02:00:00:00:02:01'}]",
        "keys: [{id: 1, secret: 000102030405060708090a0b0c0d0e0f}]",
        "vips:",
        *(f"  - {{name: v{i}, address: 203.0.113.{i}, port: 80, syn_defence: {{mode: auto}}}}" for i in range(vips)),
        "servers:",
        *(f"  - {{name: s{i}, vip: v{i % vips}, address: 10.0.{i >> 8}.{i & 255}, port: 80, sid: {i}}}" for i in range(SERVERS)),
    ]
    return loads("\n".join(lines), Path("health.yaml"))


async def install(vips: int) -> list[Row]:
    """Let one server after the other fail and recover, and one VIP after the other be attacked."""
    with softswitch().running() as running:
        controller = Controller(site(running.address, vips))
        task = asyncio.create_task(controller.run())
        try:
            await controller.installed()
            states = [
                await milliseconds(controller, with_state(controller.config, number, state))
                for number in range(CHANGES)
                for state in (ServerState.DRAINING, ServerState.ACTIVE)
            ]
            modes = [
                await milliseconds(controller, with_mode(controller.config, number % vips, mode))
                for number in range(CHANGES)
                for mode in (SynMode.ALWAYS, SynMode.AUTO)
            ]
        finally:
            task.cancel()
            await asyncio.wait([task])
    of = f"{vips}_vip{'s' if vips > 1 else ''}"
    return [
        one
        for name, times in ((f"health_write_{of}", states), (f"syn_defence_write_{of}", modes))
        for one in (row(name, statistics.median(times), "ms"), row(f"{name}_worst", max(times), "ms"))
    ]


async def milliseconds(controller: Controller, config: Config) -> float:
    """Return the time that a change takes until the switch has it."""
    began = time.monotonic()
    await controller.apply(config)
    return 1000 * (time.monotonic() - began)


def with_state(config: Config, number: int, state: ServerState) -> Config:
    """Return the configuration with another state of one server."""
    servers = list(config.servers)
    servers[number] = servers[number].model_copy(update={"state": state})
    return config.model_copy(update={"servers": tuple(servers)})


def with_mode(config: Config, number: int, mode: SynMode) -> Config:
    """Return the configuration with another mode of the defence of one VIP."""
    vips = list(config.vips)
    defence = vips[number].syn_defence
    assert defence is not None
    vips[number] = vips[number].model_copy(update={"syn_defence": defence.model_copy(update={"mode": mode})})
    return config.model_copy(update={"vips": tuple(vips)})


def run() -> list[Row]:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    context = multiprocessing.get_context("spawn")
    servers = [context.Process(target=serve, daemon=True) for serve in (accept, respond)]
    try:
        for server in servers:
            server.start()
        for port in PORTS.values():
            wait_for(port)
        checks = [*asyncio.run(measure("tcp", TCP_CHECKS)), *asyncio.run(measure("http", HTTP_CHECKS))]
    finally:
        for server in servers:
            server.terminate()
    return [*checks, *(one for vips in VIPS for one in asyncio.run(install(vips)))]


def wait_for(port: int) -> None:
    """Wait until a server listens."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection((SERVER, port), 1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


if __name__ == "__main__":
    finish(run)
