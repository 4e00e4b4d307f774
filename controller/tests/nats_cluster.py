"""nats-servers on this machine, with tags that say at which sites they are: in one cluster, or in one for each region, joined by
gateways to a supercluster."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import nats
import nats.errors
import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext, api
from nats.js.errors import Error as JetStreamError

from frontage.records.jetstream.link import SAFE

BUILT = Path(__file__).parents[2] / "build" / "nats-server"
BINARY = os.environ.get("NATS_SERVER") or (str(BUILT) if BUILT.exists() else shutil.which("nats-server"))


def skip_without_server() -> None:
    """Skip where there is no nats-server, or one that is not known to keep what it acknowledged (docs/records.md)."""
    if BINARY is None:
        pytest.skip("no nats-server: make build/nats-server, or its path in NATS_SERVER")
    text = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"v(\d+)\.(\d+)", text)
    if found is None or (int(found[1]), int(found[2])) < SAFE:
        pytest.skip(
            f"{text.strip()} has been seen to lose acknowledged writes: make build/nats-server, or another's path in NATS_SERVER"
        )


class Cluster:
    """One server for each set of sites, by number from 0."""

    def __init__(self, folder: Path, sites: Sequence[Sequence[int]], regions: Sequence[str] = ()):
        """``regions``: each server's; none: all are in one cluster."""
        count = len(sites)
        ports = _free_ports(3 * count)
        self._clients, self._routes, self._gateways = ports[:count], ports[count : 2 * count], ports[2 * count :]
        self._folder = folder
        self._sites = sites
        self._regions = regions
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def urls(self) -> list[str]:
        return [f"nats://127.0.0.1:{port}" for port in self._clients]

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes.values()]

    def start(self, number: int) -> None:
        assert BINARY is not None
        file, log = self._folder / f"{number}.conf", self._folder / f"{number}.log"
        name, gateway = "records", ""
        routes = self._routes
        if self._regions:
            name, gateway = self._regions[number], self._gateway(number)
            routes = [self._routes[other] for other in self.of(name)]
        tags = ", ".join(f'"site:{site}"' for site in self._sites[number])
        file.write_text(f"""
            server_name: s{number}
            listen: 127.0.0.1:{self._clients[number]}
            server_tags: [{tags}]
            jetstream {{ store_dir: "{self._folder / str(number)}", max_mem: 64MB, max_file: 1GB }}
            cluster {{ name: {name}, listen: 127.0.0.1:{self._routes[number]}, routes: [{_urls(routes)}] }}
            {gateway}
            log_file: "{log}"
        """)
        self._processes[number] = subprocess.Popen([BINARY, "-c", str(file)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _gateway(self, number: int) -> str:
        others = [
            f"{{ name: {region}, urls: [{_urls([self._gateways[other] for other in self.of(region)])}] }}"
            for region in sorted(set(self._regions))
        ]
        own, port = self._regions[number], self._gateways[number]
        return f"gateway {{ name: {own}, listen: 127.0.0.1:{port}, gateways: [{', '.join(others)}] }}"

    def of(self, region: str) -> list[int]:
        """The numbers of a region's servers."""
        return [number for number, one in enumerate(self._regions) if one == region]

    def start_all(self) -> None:
        for number in range(len(self._sites)):
            self.start(number)

    def kill(self, number: int) -> None:
        """As if the machine's plug were pulled, but that what was written to files stays."""
        process = self._processes.pop(number)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def freeze(self, number: int) -> None:
        """It stands still, with its connections, until `thaw`."""
        self._processes[number].send_signal(signal.SIGSTOP)

    def thaw(self, number: int) -> None:
        self._processes[number].send_signal(signal.SIGCONT)

    def stop(self) -> None:
        for number in list(self._processes):
            self.kill(number)

    async def ready(self) -> None:
        """Until all servers that run have joined, so that streams can be placed on any of them."""
        async with asyncio.timeout(60):
            client = await self._connect()
            try:
                streams = client.jetstream(timeout=1)
                while True:
                    if await self._all_joined(streams):
                        return
                    await asyncio.sleep(0.05)
            finally:
                await client.close()

    async def _connect(self) -> Client:
        """Whichever answers: at the start, none does for a while."""
        while True:
            for number in self._processes:
                try:
                    return await nats.connect(self.urls[number], allow_reconnect=False, error_cb=_silent)
                except (OSError, nats.errors.Error):
                    await asyncio.sleep(0.05)

    async def _all_joined(self, streams: JetStreamContext) -> bool:
        """A stream on all servers of each region can be had."""
        sizes = Counter(self._regions[number] for number in self._processes) if self._regions else {"": len(self._processes)}
        for region, size in sizes.items():
            where = api.Placement(cluster=region) if region else None
            config = api.StreamConfig(name="probe", subjects=["probe"], num_replicas=size, placement=where)
            try:
                await streams.add_stream(config)
                await streams.delete_stream("probe")
            except (JetStreamError, nats.errors.Error, TimeoutError):
                return False
        return True

    async def clear(self) -> None:
        """Delete all streams."""
        client = await self._connect()
        try:
            streams = client.jetstream(timeout=5)
            while found := await streams.streams_info():
                for one in found:
                    await streams.delete_stream(one.config.name or "")
        finally:
            await client.close()


def supercluster(folder: Path, regions: int = 3, nodes: int = 3) -> Cluster:
    """As many sites as regions, numbered from 1, with ``nodes`` servers each; a cluster of its own each."""
    sites = [site for site in range(1, regions + 1) for _ in range(nodes)]
    return Cluster(folder, [[site] for site in sites], [f"region-{site}" for site in sites])


async def _silent(_: Exception) -> None:
    """A server that is not up yet is asked again."""


def _urls(ports: Sequence[int]) -> str:
    return ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
