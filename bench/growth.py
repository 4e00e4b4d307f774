# SPDX-License-Identifier: Apache-2.0
"""How time, memory and rate grow with the servers of a VIP, with VIPs, ports and connections.

The benchmark reports, for each size, the core time of controller and switch until everything is installed, and the
memory and the entries of the switch. The rate is that of the site's TCP traffic in process, per second of one core.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from frontage.config import loads
from frontage.service.controller import Controller
from paths import P4, WORK, program
from pipeline import pipeline_speeds
from processes import core_seconds, resident
from rows import Row, finish, row
from sites import CPU_PORT, OUTSIDE, SECRETS, Link, Site, client_prefixes, downloads, site
from switches import softswitch

CONNECTIONS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
MIN_SERVERS = 8
"""Servers of each VIP where VIPs, ports or connections grow."""
TARGET = P4 / "frontage.json"


@dataclass(frozen=True)
class Size:
    """The size of a site."""

    vips: int
    servers: int
    """The servers of each VIP."""
    ports: int
    """Ports to servers, which the VIPs share evenly."""

    def link(self, vip: int) -> Link:
        """Return the link to the servers of a VIP."""
        port = OUTSIDE.port + 1 + vip % self.ports
        return Link(port, f"02:00:00:01:{port >> 8:02x}:{port & 255:02x}", f"02:00:00:02:{port >> 8:02x}:{port & 255:02x}")


SIZES = {
    "servers": {count: Size(1, count, 1) for count in (1, 16, 256, 4096)},
    "vips": {count: Size(count, MIN_SERVERS, 1) for count in (1, 8, 64, 512)},
    "ports": {count: Size(count, MIN_SERVERS, count) for count in (1, 8, 64, 256)},
}


def configuration(size: Size, address: str) -> dict[str, Any]:
    """Return the controller's configuration of a site with a switch at this address."""
    links = {size.link(vip).port: size.link(vip) for vip in range(size.vips)}
    routes = [{"prefix": f"{prefix}/24", "port": "outside", "mac": OUTSIDE.neighbor} for prefix in client_prefixes()]
    routes += [
        {"prefix": f"{_network(vip)}/16", "port": _port(size, vip), "mac": size.link(vip).neighbor} for vip in range(size.vips)
    ]
    inside = [{"id": link.port, "name": f"inside{link.port}", "role": "server", "mac": link.mac} for link in links.values()]
    return {
        "device": {
            "address": address,
            "cpu_port": CPU_PORT,
            "pipeline": {"p4info": str(TARGET.with_suffix(".p4info.txtpb")), "json": str(TARGET)},
        },
        "ports": [{"id": OUTSIDE.port, "name": "outside", "role": "client", "mac": OUTSIDE.mac}, *inside],
        "routes": routes,
        "vips": [{"name": f"v{vip}", "address": str(_address(vip)), "port": 80, "policy": "cclb4"} for vip in range(size.vips)],
        "servers": [
            {
                "name": f"v{vip}s{server}",
                "vip": f"v{vip}",
                "address": str(_network(vip) + 1 + server),
                "port": 8080,
                "sid": vip * size.servers + server,
            }
            for vip in range(size.vips)
            for server in range(size.servers)
        ],
        "keys": [{"id": key_id, "secret": secret} for key_id, secret in SECRETS.items()],
    }


def traffic(size: Size) -> dict[str, Any]:
    """Return the traffic of a site, which its VIPs and their servers share evenly."""
    services = [
        {
            "vip": f"{_address(vip)}:80",
            "servers": [
                {
                    "sid": vip * size.servers + server,
                    "address": f"{_network(vip) + 1 + server}:8080",
                    "inside": size.link(vip).to_json(),
                }
                for server in range(size.servers)
            ],
        }
        for vip in range(size.vips)
    ]
    return downloads(services)


def _address(vip: int) -> IPv4Address:
    return IPv4Address("203.0.112.0") + vip


def _network(vip: int) -> IPv4Address:
    return IPv4Address("16.0.0.0") + (vip << 16)


def _port(size: Size, vip: int) -> str:
    return f"inside{size.link(vip).port}"


def create(what: str, count: int, size: Size) -> Site:
    """Return a site of this size. Raises FileNotFoundError without the compiled program."""
    if not TARGET.exists():
        raise FileNotFoundError(f"{TARGET} is missing: run `make setup`, or set ARTIFACTS to its folder")
    config = loads(json.dumps(configuration(size, "unix:unused")), WORK / "growth.yaml")
    return site(f"{what}-{count}", config, traffic(size))


async def install(size: Size) -> tuple[float, float]:
    """Install a site in a softswitch; return the core time of controller and switch in seconds, and the switch's memory in bytes."""
    with softswitch().running() as running:
        started = core_seconds(running.pid)
        controller = Controller(loads(json.dumps(configuration(size, running.address)), WORK / "growth.yaml"))
        task = asyncio.create_task(controller.run())
        try:
            await controller.installed()
            return core_seconds(running.pid) - started, resident(running.pid)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def of_sites(what: str, sizes: dict[int, Size]) -> Iterator[Row]:
    """Yield the rows of sites of different sizes."""
    sites = {count: create(what, count, size) for count, size in sizes.items()}
    for (count, one), speeds in zip(sites.items(), pipeline_speeds(*sites.values()), strict=True):
        seconds, memory = asyncio.run(install(sizes[count]))
        name = f"growth_{what}_{count}"
        yield row(f"{name}_entries", len(one.state), "entries")
        yield row(f"{name}_install", seconds, "s")
        yield row(f"{name}_memory", memory / 1e6, "MB")
        yield row(f"{name}_pps", speeds["all"].packets_per_second, "packets/s")


def of_connections(counts: Iterable[int]) -> Iterator[Row]:
    """Yield the rows of numbers of connections to one VIP."""
    path = create("connections", MIN_SERVERS, Size(1, MIN_SERVERS, 1)).write()
    command: list[str | Path] = [program("FRONTAGE_BENCH", "frontage-bench"), "connections", path, *map(str, counts)]
    for cost in json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout):
        name = f"growth_connections_{cost['connections']}"
        yield row(f"{name}_pps", cost["packets_per_second"], "packets/s")
        yield row(f"{name}_memory", cost["bytes"] / 1e6, "MB")


def measure() -> list[Row]:
    rows = [one for what, sizes in SIZES.items() for one in of_sites(what, sizes)]
    return [*rows, *of_connections(CONNECTIONS)]


if __name__ == "__main__":
    finish(measure)
