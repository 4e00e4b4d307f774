# SPDX-License-Identifier: Apache-2.0
"""nats-servers on this machine, in one cluster or in one per region."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import IO

import pytest
from nats.js.errors import NotFoundError

from frontage.jetstream import MIN_SERVER_VERSION
from frontage_records.jetstream.connection import Connection
from frontage_testbed.natsservers import Node, Servers
from frontage_testbed.ports import reserve_ports

CLEAR_TIMEOUT = 60.0
"""Seconds to delete all streams, also on a busy machine."""
BUILT = Path(__file__).parents[3] / "build" / "nats-server"
BINARY = os.environ.get("NATS_SERVER") or (str(BUILT) if BUILT.exists() else shutil.which("nats-server"))


def skip_without_server() -> None:
    """Skip without a nats-server, or with a version that may lose acknowledged writes (docs/records.md)."""
    if BINARY is None:
        pytest.skip("no nats-server: run `make build/nats-server`, or set NATS_SERVER")
    text = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"v(\d+)\.(\d+)", text)
    if found is None or (int(found[1]), int(found[2])) < MIN_SERVER_VERSION:
        pytest.skip(f"{text.strip()} may lose acknowledged writes: run `make build/nats-server`, or set NATS_SERVER")


MEMORY = Path("/dev/shm")
"""A file system in memory: on a disk that other programs write to, servers wait for seconds, and groups lose their leaders."""


class Cluster(Servers):
    """A cluster with one server per set of sites. The data is in memory, and exists as long as this object."""

    def __init__(self, folder: Path, sites: Sequence[Sequence[int]], regions: Sequence[str] = ()):
        """``regions``: the region of each server; without regions, all servers are in one cluster."""
        ports = iter(reserve_ports(3 * len(sites)))
        clusters = regions or ["records"] * len(sites)
        nodes = [
            Node(f"s{number}", cluster, tuple(at), "127.0.0.1", next(ports), next(ports), next(ports))
            for number, (cluster, at) in enumerate(zip(clusters, sites, strict=True))
        ]
        self._memory = tempfile.TemporaryDirectory(prefix="frontage-nats-", dir=MEMORY if MEMORY.is_dir() else None)
        super().__init__(folder, nodes, _run, Path(self._memory.name))

    async def clear(self) -> None:
        """Delete all streams."""
        connection = await Connection.connect(self.urls)
        try:
            async with asyncio.timeout(CLEAR_TIMEOUT):
                while names := await connection.names():
                    for name in names:
                        with contextlib.suppress(NotFoundError):
                            await connection.retry(partial(connection.context.delete_stream, name))
        finally:
            await connection.close()


def _run(_: Node, file: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    assert BINARY is not None
    # Many servers share few cores. With one thread each, Go's scheduler takes less of them.
    environment = os.environ | {"GOMAXPROCS": "1"}
    return subprocess.Popen([BINARY, "-c", file], stdout=log, stderr=log, env=environment)


def supercluster(folder: Path, regions: int = 3, nodes: int = 3) -> Cluster:
    """Return a supercluster with one site per region, numbered from 1, each with a cluster of ``nodes`` servers."""
    sites = [site for site in range(1, regions + 1) for _ in range(nodes)]
    return Cluster(folder, [[site] for site in sites], [f"region-{site}" for site in sites])
