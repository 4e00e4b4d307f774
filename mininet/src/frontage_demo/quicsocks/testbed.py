# SPDX-License-Identifier: Apache-2.0
"""A testbed with wires, resolver, proxy, authoritative name server and HTTP/3 servers."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from frontage_testbed import nameservers
from frontage_testbed.nodes import Namespace, Network, NodeError
from frontage_testbed.processes import serve
from frontage_testbed.programs import missing_packages, ours
from frontage_testbed.wires import Wires

from . import files
from .masque import PORT as MASQUE_PORT
from .masque import Masque
from .topology import CLIENT, ISP, ISP_ADDRESS, ONE_WAY_MS, SERVER, SERVER_ADDRESS, Lte

READY_TIMEOUT = 20.0
OURS, MASQUE = "QuicSocks", "MASQUE"
"""Names of the proxies."""
PACKAGES = nameservers.PACKAGES | {"openssl": "openssl", "ping": "iputils-ping", "ss": "iproute2"}
"""Programs that the testbed needs, with their Debian packages."""


@dataclass(frozen=True)
class Programs:
    """Paths of our own programs."""

    switch: Path
    compiler: Path
    server: Path
    proxy: Path
    load: Path

    @classmethod
    def of(cls, folder: Path) -> Programs:
        """Find the programs in `folder`. Raises NodeError if one is missing."""
        names = ("softswitch", "softswitch-p4c", "frontage-cclb7-quic", "frontage-quicsocks", "frontage-quicsocks-load")
        return cls(*ours(folder, *names))


def missing() -> list[str]:
    """Return the missing Debian packages."""
    return missing_packages(PACKAGES)


@dataclass(frozen=True)
class Testbed:
    """A running testbed."""

    folder: Path
    programs: Programs
    client: Namespace
    isp: Namespace
    server: Namespace
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    """The running programs by name."""

    def load(self, host: Namespace, *options: str, retry: bool, names: str, handshakes: int) -> dict[str, Any]:
        """Return the report of `frontage-quicsocks-load` about handshakes with servers of these names."""
        command: list[str | Path] = [self.programs.load, "--ca", self.folder / "certificate.pem"]
        command += ["--names", f"{names}.{files.ZONE_NAME}"]
        command += ["--port", str(files.PORTS[retry]), "--handshakes", str(handshakes), *options]
        report: dict[str, Any] = json.loads(host.run(command).stdout)
        return report

    def proxy_metrics(self) -> str:
        """Return the proxy's Prometheus metrics."""
        return self.isp.run(["curl", "-s", f"http://{files.PROXY_METRICS}/metrics"]).stdout

    def round_trip(self, host: Namespace, address: str) -> float:
        """Return the median of seven pings in ms."""
        output = host.run(["ping", "-n", "-c", "7", "-i", "0.05", address]).stdout
        times = [float(line.split("time=")[1].split()[0]) for line in output.splitlines() if "time=" in line]
        return median(times)


@contextlib.contextmanager
def bring_up(programs: Programs, scratch: Path, masque: Masque | None = None) -> Iterator[Testbed]:
    """Run a testbed within a context, with a MASQUE proxy if `masque` is given.

    Its processes end with the namespaces of the caller.
    """
    if absent := missing():
        raise NodeError(f"Debian packages are missing: apt-get install {' '.join(absent)}")
    folder = scratch / "quicsocks"
    folder.mkdir()
    files.write(folder)
    wires = Wires(programs.switch, programs.compiler, folder)
    network = Network(Lte())
    network.start()
    hosts = [network.get(name) for name in (CLIENT, ISP, SERVER)]
    testbed = Testbed(folder, programs, *hosts)
    links = {port: f"delay={round(delay * 1000)}us" for port, delay in ONE_WAY_MS.items()}
    wires.start([*links], links, seed=1)
    started: list[tuple[Namespace, str, int, Sequence[str | Path]]] = [
        (testbed.server, "nsd", files.DNS_PORT, nameservers.AUTHORITY),
        (testbed.isp, "unbound", files.DNS_PORT, nameservers.RESOLVER),
        (testbed.isp, OURS, files.PROXY_PORT, [programs.proxy, folder / "proxy.toml"]),
    ]
    for port in files.PORTS.values():
        started.append((testbed.server, f"server-{port}", port, [programs.server, folder / f"server-{port}.toml"]))
    if masque:
        started.append((testbed.isp, MASQUE, MASQUE_PORT, masque.serve(folder)))
    for host, name, port, command in started:
        testbed.processes[name] = serve(host, name, command, port, folder)
    _wait_until_reachable(testbed)
    yield testbed


def _wait_until_reachable(testbed: Testbed) -> None:
    """Have neighbors resolved before anything is measured."""
    deadline = time.monotonic() + READY_TIMEOUT
    for address in (ISP_ADDRESS, SERVER_ADDRESS):
        while True:
            try:
                testbed.client.run(["ping", "-n", "-c", "1", "-W", "1", address])
                break
            except NodeError:
                if time.monotonic() > deadline:
                    raise
