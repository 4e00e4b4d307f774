# SPDX-License-Identifier: Apache-2.0
"""The supercluster's servers: one cluster in each region."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from frontage_testbed.natsservers import Node, Servers
from frontage_testbed.ports import reserve_ports

NODES = 3
"""Servers per region."""


@dataclass(frozen=True)
class Region:
    """Where the servers and clients of a site run."""

    site: int
    address: str
    """IPv4 or IPv6, without brackets."""
    spawn: Callable[[Sequence[str | Path], IO[bytes]], subprocess.Popen[bytes]]
    """Starts a process in the region."""


def servers(binary: Path, folder: Path, regions: Sequence[Region]) -> Servers:
    """Return the servers of all regions, not yet started."""
    ports = iter(reserve_ports(3 * NODES * len(regions)))
    at = {
        Node(
            name=f"r{region.site}-{number}",
            cluster=f"region-{region.site}",
            sites=(region.site,),
            address=region.address,
            client=next(ports),
            route=next(ports),
            gateway=next(ports),
        ): region
        for region in regions
        for number in range(NODES)
    }

    def run(node: Node, file: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
        # All servers share few cores. With one thread each, Go's scheduler does not take a third of them.
        return at[node].spawn(["/usr/bin/env", "GOMAXPROCS=1", binary, "-c", file], log)

    return Servers(folder, list(at), run)
