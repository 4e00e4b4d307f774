# SPDX-License-Identifier: Apache-2.0
"""Pushing a computed mapping to a dispatcher over HTTP and to a switch over P4Runtime.

Times are core time of one core: the sum of this process and the receiver, which work alternately.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
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
from processes import core_seconds, resident
from rows import Row, row
from switches import softswitch

SITE = 1
"""Site of dispatcher and switch."""
MAX_MAPPING_ENTRIES = 131_072
"""Size of the switch's table of (deployment, region)."""
DISPATCHER = """\
control = "127.0.0.1:{port}"
threads = 1
[tunnel]
listen = "127.0.0.1:4789"
peers = ["127.0.0.1"]
"""
DISPATCHER_TIMEOUT = 20.0
"""Seconds for the dispatcher to start, and to answer a request."""
Updates = Mapping[str, Callable[[], Changes]]


class EngineTables:
    """The tables of an engine as readers of a store see them: unchanged deployments remain the same objects."""

    def __init__(self, engine: Engine, names: Collection[str]):
        self.engine = engine
        self._details = {name: Service(name, number) for number, name in enumerate(names, 1)}
        self.current = Tables(details=self._details)
        self.refresh(engine.deployments.values())

    def refresh(self, touched: Collection[int]) -> Tables:
        """Read the tables again after a change of these deployments, and return them."""
        engine, version = self.engine, self.current.version + 1
        deployments = {
            number: self.current.deployments[number]
            if number in self.current.deployments and number not in touched
            else Choices(tuple(engine.sites[list(deployment.sites)].tolist()), deployment.redundancy, engine.choices[number].copy())
            for deployment, number in engine.deployments.items()
        }
        services = {name: engine.deployments[deployment] for name, deployment in engine.services.items()}
        self.current = Tables(version, version, engine.clients, deployments, services, self._details)
        return self.current

    def apply(self, update: Callable[[], Changes]) -> Tables:
        """Run an update of the engine and return the new tables."""
        changes = update()
        return self.refresh({number for number, _, _ in changes.mapping} | changes.deployments.keys())


def measure_push(engine: Engine, names: Collection[str], updates: Updates) -> Iterator[Row]:
    """Push the full table, then a change of each kind, to both receivers; yield the rows."""
    states = EngineTables(engine, names)
    yield from _push_to_dispatcher(states, updates)
    yield from asyncio.run(_push_to_switch(states, updates))


@contextlib.contextmanager
def _dispatcher() -> Iterator[tuple[str, int]]:
    """Run a dispatcher until the context ends; yield its URL and process id."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="frontage-bench-") as folder:
        file = Path(folder) / "dispatcher.toml"
        file.write_text(DISPATCHER.format(port=port))
        process = subprocess.Popen([program("FRONTAGE_DISPATCHER", "frontage-dispatcher"), file], stdout=subprocess.DEVNULL)
        try:
            yield f"http://127.0.0.1:{port}", process.pid
        finally:
            process.kill()
            process.wait()


def _push_to_dispatcher(states: EngineTables, updates: Updates) -> Iterator[Row]:
    vteps = {site: ip_address(f"127.0.1.{site}") for site in states.engine.sites.tolist()}
    with _dispatcher() as (url, pid):
        dispatcher = Dispatcher(url, SITE, timeout=DISPATCHER_TIMEOUT)
        deadline = time.monotonic() + DISPATCHER_TIMEOUT
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
        entries = dispatcher.push(states.current, vteps)
        seconds = core_seconds(pid) - started
        yield row("mapping_push_entries", entries, "entries")
        yield row("mapping_push", 1000 * seconds, "ms")
        yield row("mapping_push_entries_per_second", entries / seconds, "entries/s")
        for kind, update in updates.items():
            tables = states.apply(update)
            started = core_seconds(pid)
            dispatcher.push(tables, vteps)
            yield row(f"mapping_push_1_percent_{kind}", 1000 * (core_seconds(pid) - started), "ms")
        if dispatcher.replaced > 1:
            raise RuntimeError("the dispatcher rejected a delta and received the full table again")
        yield row("mapping_push_memory", (resident(pid) - before) / 1e6, "MB")


async def _push_to_switch(states: EngineTables, updates: Updates) -> list[Row]:
    names = _services_that_fit(states.current)
    numbers = {name: states.current.details[name].number for name in names}
    rows = [row("mapping_switch_services", len(names), "services")]
    with softswitch().running() as running:
        controller = Controller(_config(running.address, numbers, states.engine.sites.tolist()))
        task = asyncio.create_task(controller.run())
        try:
            await controller.installed()
            old = Tables()
            for kind, update in {"": lambda: Changes(), **updates}.items():
                tables = states.apply(update)
                written = controller.health.writes.total()
                started = core_seconds(running.pid)
                await controller.steer(switch.change(old, tables, SITE, names))
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


def _services_that_fit(tables: Tables) -> list[str]:
    """Return as many services as one switch has room for, from the first deployments; one VIP is the switch's own."""
    regions = 1 + max(tables.clients.values())
    deployments = sorted(tables.deployments)[: int(0.9 * MAX_MAPPING_ENTRIES) // regions]
    return [name for name, number in tables.services.items() if number in deployments][: MAX_VIPS - 1]


def _config(address: str, services: Mapping[str, int], sites: list[int]) -> Config:
    """Return the configuration of a switch at site 1 with these services, each with its own dedicated address."""
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
        "site": {"id": SITE, "vtep": f"2001:db8:1::{SITE:x}"},
        "sites": [
            {"id": n, "name": f"site{n}", "vtep": f"2001:db8:1::{n:x}", "sids": [(n - 1) * share, n * share - 1]} for n in sites
        ],
        "keys": [{"id": 1, "secret": "00112233445566778899aabbccddeeff"}],
    }
    return loads(json.dumps(config), WORK / "frontage.yaml")
