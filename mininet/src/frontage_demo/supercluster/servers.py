"""The supercluster's servers: a cluster for each region."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from frontage_testbed.natsservers import Node, Servers, free_ports

NODES = 3
"""Of each region."""


@dataclass(frozen=True)
class Region:
    """Where a site's servers and clients are."""

    site: int
    address: str
    """IPv4 or IPv6, without brackets."""
    spawn: Callable[[Sequence[str | Path], IO[bytes]], subprocess.Popen[bytes]]
    """Start a process there."""


def servers(binary: Path, folder: Path, regions: Sequence[Region]) -> Servers:
    """Those of all regions, which do not run yet."""
    ports = iter(free_ports(3 * NODES * len(regions)))
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
        # As many as there are share few cores: one thread each at a time, or Go's scheduler takes a third of them.
        return at[node].spawn(["/usr/bin/env", "GOMAXPROCS=1", binary, "-c", file], log)

    return Servers(folder, list(at), run)
