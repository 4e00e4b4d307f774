# SPDX-License-Identifier: Apache-2.0
"""The doors that a computed mapping goes to: a dispatcher, over HTTP, and a switch, over P4Runtime.

Times are of one core: the sum of this process's and of that at the door, which work in turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any

from frontage.config import Config, loads
from frontage.limits import MAX_SID, MAX_VIPS
from frontage.mapping.compute.engine import Engine
from frontage.mapping.compute.values import Changes
from frontage.mapping.control import switch
from frontage.mapping.control.dispatcher import Dispatcher, DispatcherError
from frontage.mapping.services import Service
from frontage.mapping.store.tables import Choices, Tables
from frontage.service.controller import Controller
from paths import P4, WORK, program
from rows import Row, row
from switches import softswitch

OWN = 1
"""The site whose doors they are."""
MAPPINGS = 131_072
"""Entries of (deployment, region) that a switch has room for."""
DISPATCHER = """\
control = "127.0.0.1:{port}"
threads = 1
[tunnel]
listen = "127.0.0.1:4789"
peers = ["127.0.0.1"]
"""
PATIENCE = 20.0
Updates = Mapping[str, Callable[[], Changes]]


class States:
    """The tables of an engine, as they are read from a store: what has not changed is the same object."""

    def __init__(self, engine: Engine, names: Collection[str]):
        self._engine = engine
        self._details = {name: Service(name, number) for number, name in enumerate(names, 1)}
        self.now = Tables(details=self._details)
        self.follow(engine.deployments.values())

    def follow(self, touched: Collection[int]) -> Tables:
        """The tables after a change that touched these deployments."""
        engine, version = self._engine, self.now.version + 1
        deployments = {
            number: self.now.deployments[number]
            if number in self.now.deployments and number not in touched
            else Choices(tuple(engine.sites[list(deployment.sites)].tolist()), deployment.redundancy, engine.choices[number].copy())
            for deployment, number in engine.deployments.items()
        }
        services = {name: engine.deployments[deployment] for name, deployment in engine.services.items()}
        self.now = Tables(version, version, engine.clients, deployments, services, self._details)
        return self.now

    def after(self, update: Callable[[], Changes]) -> Tables:
        changes = update()
        return self.follow({number for number, _, _ in changes.mapping} | changes.deployments.keys())


def at_doors(engine: Engine, names: Collection[str], updates: Updates) -> Iterator[Row]:
    """The whole table, and then a change of each kind, at both."""
    states = States(engine, names)
    yield from _at_dispatcher(states, updates)
    yield from asyncio.run(_at_switch(states, updates))


@contextlib.contextmanager
def _dispatcher() -> Iterator[tuple[str, int]]:
    """(URL, process id) of one."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="frontage-bench-") as folder:
        file = Path(folder) / "dispatcher.toml"
        file.write_text(DISPATCHER.format(port=port))
        process = subprocess.Popen([program("FRONTAGE_DISPATCHER", "frontage-dispatcher"), file], stdout=subprocess.DEVNULL)
        try:
            yield f"http://127.0.0.1:{port}", process.pid
        finally:
            process.kill()
            process.wait()


def _at_dispatcher(states: States, updates: Updates) -> Iterator[Row]:
    vteps = {site: ip_address(f"127.0.1.{site}") for site in states._engine.sites.tolist()}
    with _dispatcher() as (url, pid):
        dispatcher = Dispatcher(url, OWN, timeout=PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                dispatcher.read_version()
                break
            except DispatcherError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        before = resident(pid)
        started = core_seconds(pid)
        entries = dispatcher.push(states.now, vteps)
        spent = core_seconds(pid) - started
        yield row("mapping_push_entries", entries, "entries")
        yield row("mapping_push", 1000 * spent, "ms")
        yield row("mapping_push_entries_per_second", entries / spent, "entries/s")
        for kind, update in updates.items():
            tables = states.after(update)
            started = core_seconds(pid)
            dispatcher.push(tables, vteps)
            yield row(f"mapping_push_1_percent_{kind}", 1000 * (core_seconds(pid) - started), "ms")
        if dispatcher.replaced > 1:
            raise RuntimeError("the dispatcher refused a difference, and got the whole table")
        yield row("mapping_push_memory", (resident(pid) - before) / 1e6, "MB")


def resident(pid: int | str) -> float:
    """Bytes of memory that a process has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


def core_seconds(pid: int) -> float:
    """Core time so far of this process and the one at the door."""
    # The program's name, in parentheses, may hold anything; utime and stime are fields 14 and 15 (proc_pid_stat(5)).
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return time.process_time() + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _at_switch(states: States, updates: Updates) -> list[Row]:
    names = _fitting(states.now)
    numbers = {name: states.now.details[name].number for name in names}
    rows = [row("mapping_switch_services", len(names), "services")]
    with softswitch().running() as running:
        controller = Controller(_config(running.address, numbers, states._engine.sites.tolist()))
        task = asyncio.create_task(controller.run())
        try:
            await controller.installed()
            old = Tables()
            for kind, update in {"": lambda: Changes(), **updates}.items():
                tables = states.after(update)
                written = controller.health.writes.total()
                started = core_seconds(running.pid)
                await controller.steer(switch.change(old, tables, OWN, names))
                await controller.installed()
                seconds, writes = core_seconds(running.pid) - started, controller.health.writes.total() - written
                old = tables
                if kind:
                    rows.append(row(f"mapping_switch_1_percent_{kind}", 1000 * seconds, "ms"))
                    rows.append(row(f"mapping_switch_1_percent_{kind}_entries", writes, "entries"))
                else:
                    rows.append(row("mapping_switch_entries", writes, "entries"))
                    rows.append(row("mapping_switch_entries_per_second", writes / seconds, "entries/s"))
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    return rows


def _fitting(tables: Tables) -> list[str]:
    """The services that one switch has room for, beside its own address: those of the first deployments."""
    regions = 1 + max(tables.clients.values())
    deployments = sorted(tables.deployments)[: int(0.9 * MAPPINGS) // regions]
    return [name for name, number in tables.services.items() if number in deployments][: MAX_VIPS - 1]


def _config(address: str, services: Mapping[str, int], sites: list[int]) -> Config:
    """Of a switch at site 1 with these services, which the address decides."""
    target = P4 / "frontage.json"
    share = (MAX_SID + 1) // len(sites)
    prefix = int(IPv6Address("2001:db8:a57e::"))
    config: dict[str, Any] = {
        "device": {
            "address": address,
            "cpu_port": 510,
            "pipeline": {"p4info": str(target.with_suffix(".p4info.txtpb")), "json": str(target)},
        },
        "ports": [
            {"id": 1, "name": "uplink", "role": "client", "mac": "02:00:00:00:01:01"},
            {"id": 2, "name": "backbone", "role": "site", "mac": "02:00:00:00:01:02"},
        ],
        "routes": [
            {"prefix": "::/0", "port": "uplink", "mac": "02:00:00:00:02:01"},
            {"prefix": "2001:db8:1::/48", "port": "backbone", "mac": "02:00:00:00:02:02"},
        ],
        "vips": [
            {
                "name": name,
                "address": str(IPv6Address(prefix + (number << 64))),
                "protocol": "udp",
                "port": 443,
                "policy": "hash",
                "artemis": {"name": name, "id": number},
            }
            for name, number in services.items()
        ],
        "site": {"id": OWN, "vtep": f"2001:db8:1::{OWN:x}"},
        "sites": [
            {"id": n, "name": f"site{n}", "vtep": f"2001:db8:1::{n:x}", "sids": [(n - 1) * share, n * share - 1]} for n in sites
        ],
        "keys": [{"id": 1, "secret": "00112233445566778899aabbccddeeff"}],
    }
    return loads(json.dumps(config), WORK / "frontage.yaml")
