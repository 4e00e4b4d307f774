"""nats-servers with JetStream, each at sites that its tags say: in one cluster, or in several that gateways join to a
supercluster.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
from collections import Counter
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

PATIENCE = 60.0


@dataclass(frozen=True)
class Node:
    """One server."""

    name: str
    cluster: str
    sites: tuple[int, ...]
    address: str
    """IPv4 or IPv6, without brackets."""
    client: int
    route: int
    gateway: int

    def at(self, port: int) -> str:
        """Host and port, as in a URL."""
        return f"[{self.address}]:{port}" if ":" in self.address else f"{self.address}:{port}"

    @property
    def url(self) -> str:
        """For clients."""
        return f"nats://{self.at(self.client)}"


class Servers:
    """All of them. What they have stored is below `folder`, and stays when they are killed."""

    def __init__(
        self,
        folder: Path,
        nodes: Sequence[Node],
        run: Callable[[Node, Path, IO[bytes]], subprocess.Popen[bytes]],
    ) -> None:
        """`run` starts a server by its configuration, with a log."""
        self.nodes = nodes
        self._folder = folder
        self._run = run
        self._running: dict[Node, subprocess.Popen[bytes]] = {}

    def of(self, site: int) -> list[Node]:
        """Those at a site."""
        return [node for node in self.nodes if site in node.sites]

    def named(self, name: str) -> Node:
        """One, by its name."""
        return next(node for node in self.nodes if node.name == name)

    @property
    def urls(self) -> list[str]:
        """Where clients connect, to any."""
        return [node.url for node in self.nodes]

    def near(self, site: int) -> list[str]:
        """Where the clients at a site do."""
        return [node.url for node in self.of(site)]

    @property
    def pids(self) -> list[int]:
        """The processes."""
        return [process.pid for process in self._running.values()]

    def start_all(self) -> None:
        """For the first time."""
        for node in self.nodes:
            self.start(node)

    def start(self, node: Node) -> None:
        """Again, if it was killed."""
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
            jetstream {{ store_dir: "{self._folder / node.name}", max_mem: 64MB, max_file: 2GB }}
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
        """With signal 9: as if its machine lost power, but that what it wrote to files stays."""
        process = self._running.pop(node)
        process.kill()
        process.wait()

    def freeze(self, node: Node) -> None:
        """It stands still, with its connections, until `thaw`."""
        self._running[node].send_signal(signal.SIGSTOP)

    def thaw(self, node: Node) -> None:
        """It goes on."""
        self._running[node].send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """All that run."""
        for node in list(self._running):
            self.kill(node)

    async def ready(self) -> None:
        """Wait until a stream can be had on all servers of each cluster, as far as they run."""
        sizes = Counter(node.cluster for node in self._running)
        async with asyncio.timeout(PATIENCE):
            for cluster, size in sizes.items():
                client = await self.connect(cluster)
                try:
                    while not await _placed(client, cluster, size):
                        await asyncio.sleep(0.05)
                finally:
                    await client.close()

    async def connect(self, cluster: str) -> Client:
        """To whichever of a cluster answers: at the start, none does for a while."""
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
    """A server that is not up yet is asked again."""


def free_ports(count: int) -> list[int]:
    """TCP's, of this machine."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
