# SPDX-License-Identifier: Apache-2.0
"""nats-servers with JetStream: one cluster, or several that gateways connect to a supercluster.

Tags of the servers name the sites at which they are.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import nats
import nats.errors
from nats.aio.client import Client
from nats.js import api
from nats.js.errors import Error as JetStreamError

READY_TIMEOUT = 60.0


@dataclass(frozen=True)
class Node:
    """One server."""

    name: str
    cluster: str
    sites: tuple[int, ...]
    address: str
    """IPv4 or IPv6 address, without brackets."""
    client: int
    route: int
    gateway: int

    def at(self, port: int) -> str:
        """Return host and port for use in a URL."""
        return f"[{self.address}]:{port}" if ":" in self.address else f"{self.address}:{port}"

    @property
    def url(self) -> str:
        """The server's URL for clients."""
        return f"nats://{self.at(self.client)}"


class Servers:
    """The servers of a testbed. Their data survives `kill`."""

    def __init__(
        self,
        folder: Path,
        nodes: Sequence[Node],
        run: Callable[[Node, Path, IO[bytes]], subprocess.Popen[bytes]],
        data: Path | None = None,
    ) -> None:
        """`run` starts a server with a configuration file and a log.

        Configurations and logs are in `folder`, and so is the data, unless it has a folder of its own.
        """
        self.nodes = nodes
        self._folder = folder
        self._data = data or folder
        self._run = run
        self._running: dict[Node, subprocess.Popen[bytes]] = {}

    def of(self, site: int) -> list[Node]:
        """Return the servers at a site."""
        return [node for node in self.nodes if site in node.sites]

    def named(self, name: str) -> Node:
        """Return the server of this name."""
        return next(node for node in self.nodes if node.name == name)

    @property
    def urls(self) -> list[str]:
        """URLs of all servers."""
        return [node.url for node in self.nodes]

    def near(self, site: int) -> list[str]:
        """Return the URLs of the servers at a site."""
        return [node.url for node in self.of(site)]

    @property
    def pids(self) -> list[int]:
        """Process ids of the running servers."""
        return [process.pid for process in self._running.values()]

    def start_all(self) -> None:
        """Start all servers for the first time."""
        for node in self.nodes:
            self.start(node)

    def start(self, node: Node) -> None:
        """Start a server, also after it was killed."""
        file = self._folder / f"{node.name}.conf"
        file.write_text(self._configuration(node))
        with (self._folder / f"{node.name}.log").open("ab") as log:
            self._running[node] = self._run(node, file, log)

    def _configuration(self, node: Node) -> str:
        tags = ", ".join(f'"site:{site}"' for site in node.sites)
        routes = self._addresses(node.cluster, lambda other: other.route)
        return f"""
            server_name: {node.name}
            server_tags: [{tags}]
            listen: "{node.at(node.client)}"
            jetstream {{ store_dir: "{self._data / node.name}", max_mem: 64MB, max_file: 2GB }}
            cluster {{ name: {node.cluster}, listen: "{node.at(node.route)}", routes: {routes} }}
            {self._gateway(node)}
        """

    def _gateway(self, node: Node) -> str:
        clusters = sorted({other.cluster for other in self.nodes})
        if len(clusters) == 1:
            return ""
        listen = node.at(node.gateway)
        urls = {cluster: self._addresses(cluster, lambda other: other.gateway) for cluster in clusters}
        gateways = ", ".join(f"{{ name: {cluster}, urls: {urls[cluster]} }}" for cluster in clusters)
        return f'gateway {{ name: {node.cluster}, listen: "{listen}", gateways: [{gateways}] }}'

    def _addresses(self, cluster: str, port: Callable[[Node], int]) -> str:
        addresses = (f'"nats://{node.at(port(node))}"' for node in self.nodes if node.cluster == cluster)
        return f"[{', '.join(addresses)}]"

    def kill(self, node: Node) -> None:
        """Kill a server with signal 9, as if its machine lost power; its files stay."""
        process = self._running.pop(node)
        process.kill()
        process.wait()

    def freeze(self, node: Node) -> None:
        """Suspend a server with its connections until `thaw`."""
        self._running[node].send_signal(signal.SIGSTOP)

    def thaw(self, node: Node) -> None:
        """Resume a suspended server."""
        self._running[node].send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Kill all running servers."""
        for node in list(self._running):
            self.kill(node)

    async def ready(self) -> None:
        """Wait until a stream can be created on all running servers of each cluster."""
        sizes = Counter(node.cluster for node in self._running)
        async with asyncio.timeout(READY_TIMEOUT):
            for cluster, size in sizes.items():
                client = await self.connect(cluster)
                try:
                    while not await _placed(client, cluster, size):
                        await asyncio.sleep(0.05)
                finally:
                    await client.close()

    async def connect(self, cluster: str) -> Client:
        """Connect to any running server of a cluster; retry until one answers."""
        urls = [node.url for node in self._running if node.cluster == cluster]
        while True:
            try:
                return await nats.connect(urls, allow_reconnect=False, error_cb=_silent)
            except (OSError, nats.errors.Error):
                await asyncio.sleep(0.05)


async def _placed(client: Client, cluster: str, replicas: int) -> bool:
    streams = client.jetstream(timeout=2)
    where = api.Placement(cluster=cluster)
    config = api.StreamConfig(name="probe", subjects=["probe"], num_replicas=replicas, placement=where)
    try:
        await streams.add_stream(config)
        await streams.delete_stream("probe")
    except (JetStreamError, nats.errors.Error, TimeoutError):
        return False
    return True


async def _silent(_: Exception) -> None:
    """Ignore an error: servers that are not up yet are tried again."""
