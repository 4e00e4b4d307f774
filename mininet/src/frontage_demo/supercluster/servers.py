"""nats-servers: a cluster for each region, joined by gateways to a supercluster."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import nats
import nats.errors
from nats.aio.client import Client
from nats.js import api
from nats.js.errors import Error as JetStreamError

NODES = 3
"""Of each region."""
PATIENCE = 60.0


@dataclass(frozen=True)
class Region:
    """Where a site's servers and clients are."""

    site: int
    address: str
    """IPv4 or IPv6, without brackets."""
    spawn: Callable[[Sequence[str | Path], IO[bytes]], subprocess.Popen[bytes]]
    """Start a process there."""

    @property
    def cluster(self) -> str:
        """The name of its cluster."""
        return f"region-{self.site}"

    def at(self, port: int) -> str:
        """Host and port, as in a URL."""
        return f"[{self.address}]:{port}" if ":" in self.address else f"{self.address}:{port}"


@dataclass(frozen=True)
class Node:
    """One nats-server."""

    region: Region
    name: str
    client: int
    route: int
    gateway: int


class Servers:
    """All of them. What they have stored is below `folder`, and stays when they are killed."""

    def __init__(self, binary: Path, folder: Path, regions: Sequence[Region]) -> None:
        self._binary = binary
        self._folder = folder
        ports = iter(_free_ports(3 * NODES * len(regions)))
        self.nodes = [
            Node(region, f"r{region.site}-{number}", next(ports), next(ports), next(ports))
            for region in regions
            for number in range(NODES)
        ]
        self._regions = regions
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def of(self, site: int) -> list[Node]:
        """A region's."""
        return [node for node in self.nodes if node.region.site == site]

    def urls(self, site: int) -> list[str]:
        """Where a region's clients connect."""
        return [f"nats://{node.region.at(node.client)}" for node in self.of(site)]

    def start(self, node: Node) -> None:
        """Again, if it was killed."""
        file = self._folder / f"{node.name}.conf"
        file.write_text(self._config(node))
        with (self._folder / f"{node.name}.log").open("ab") as log:
            # As many as there are share few cores: one thread each at a time, or Go's scheduler takes a third of them.
            command: list[str | Path] = ["/usr/bin/env", "GOMAXPROCS=1", self._binary, "-c", file]
            self._running[node.name] = node.region.spawn(command, log)

    def _config(self, node: Node) -> str:
        region = node.region
        routes = [region.at(other.route) for other in self.of(region.site)]
        gateways = "\n".join(
            f"{{ name: {other.cluster}, urls: {_urls([other.at(one.gateway) for one in self.of(other.site)])} }}"
            for other in self._regions
        )
        return f"""
            server_name: {node.name}
            server_tags: ["site:{region.site}"]
            listen: "{region.at(node.client)}"
            jetstream {{ store_dir: "{self._folder / node.name}", max_mem: 64MB, max_file: 2GB }}
            cluster {{ name: {region.cluster}, listen: "{region.at(node.route)}", routes: {_urls(routes)} }}
            gateway {{ name: {region.cluster}, listen: "{region.at(node.gateway)}", gateways: [{gateways}] }}
        """

    def kill(self, node: Node) -> None:
        """With signal 9: as if its machine lost power, but that what it wrote to files stays."""
        process = self._running.pop(node.name)
        process.kill()
        process.wait()

    def stop(self) -> None:
        """All of them."""
        for node in self.nodes:
            if node.name in self._running:
                self.kill(node)

    def named(self, name: str) -> Node:
        """One, by its name."""
        return next(node for node in self.nodes if node.name == name)

    async def ready(self) -> None:
        """Wait until a stream can be had on all servers of each region."""
        async with asyncio.timeout(PATIENCE):
            for region in self._regions:
                client = await self._connect(region.site)
                try:
                    while not await _placed(client, region):
                        await asyncio.sleep(0.1)
                finally:
                    await client.close()

    async def _connect(self, site: int) -> Client:
        while True:
            try:
                return await nats.connect(self.urls(site), allow_reconnect=False, error_cb=_silent)
            except (OSError, nats.errors.Error):
                await asyncio.sleep(0.1)


async def _placed(client: Client, region: Region) -> bool:
    streams = client.jetstream(timeout=2)
    where = api.Placement(cluster=region.cluster)
    try:
        await streams.add_stream(
            api.StreamConfig(name="probe", subjects=["probe"], num_replicas=NODES, placement=where)
        )
        await streams.delete_stream("probe")
    except (JetStreamError, nats.errors.Error, TimeoutError):
        return False
    return True


async def _silent(_: Exception) -> None:
    """A server that is not up yet is asked again."""


def _urls(addresses: Sequence[str]) -> str:
    return "[" + ", ".join(f'"nats://{address}"' for address in addresses) + "]"


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
