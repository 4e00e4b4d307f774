"""nats-servers on this machine: in one cluster, or in one for each region."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import pytest

from frontage_records.jetstream.connection import MIN_SERVER_VERSION
from frontage_testbed.natsservers import Node, Servers, free_ports

BUILT = Path(__file__).parents[3] / "build" / "nats-server"
BINARY = os.environ.get("NATS_SERVER") or (str(BUILT) if BUILT.exists() else shutil.which("nats-server"))


def skip_without_server() -> None:
    """Skip where there is no nats-server, or one that is not known to keep what it acknowledged (docs/records.md)."""
    if BINARY is None:
        pytest.skip("no nats-server: make build/nats-server, or its path in NATS_SERVER")
    text = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"v(\d+)\.(\d+)", text)
    if found is None or (int(found[1]), int(found[2])) < MIN_SERVER_VERSION:
        pytest.skip(
            f"{text.strip()} has been seen to lose acknowledged writes: make build/nats-server, or another's path in NATS_SERVER"
        )


class Cluster(Servers):
    """One server for each set of sites."""

    def __init__(self, folder: Path, sites: Sequence[Sequence[int]], regions: Sequence[str] = ()):
        """``regions``: each server's; none: all are in one cluster."""
        ports = iter(free_ports(3 * len(sites)))
        clusters = regions or ["records"] * len(sites)
        nodes = [
            Node(f"s{number}", cluster, tuple(at), "127.0.0.1", next(ports), next(ports), next(ports))
            for number, (cluster, at) in enumerate(zip(clusters, sites, strict=True))
        ]
        super().__init__(folder, nodes, _run)

    async def clear(self) -> None:
        """Delete all streams."""
        client = await self.connect(self.nodes[0].cluster)
        try:
            streams = client.jetstream(timeout=5)
            while found := await streams.streams_info():
                for one in found:
                    await streams.delete_stream(one.config.name or "")
        finally:
            await client.close()


def _run(_: Node, file: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    assert BINARY is not None
    return subprocess.Popen([BINARY, "-c", file], stdout=log, stderr=log)


def supercluster(folder: Path, regions: int = 3, nodes: int = 3) -> Cluster:
    """As many sites as regions, numbered from 1, with ``nodes`` servers each; a cluster of its own each."""
    sites = [site for site in range(1, regions + 1) for _ in range(nodes)]
    return Cluster(folder, [[site] for site in sites], [f"region-{site}" for site in sites])
