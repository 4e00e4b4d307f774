# SPDX-License-Identifier: Apache-2.0
"""L7 load balancers with and without CCLB7, and the demo's clients for them, in the namespaces of the testbed; for table1.py."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from frontage_testbed.datacentre.servers import CONFIGURATION, NGINX, OBJECTS, PACE, PACED
from frontage_testbed.load.objects import pattern, write_objects
from frontage_testbed.load.workload import load_cdf
from http3 import Testbed, start_testbed
from paths import ROOT, program

PORTS = {False: 8080, True: 8081}
"""Ports of the servers without (False) and with CCLB7 (True)."""
PINS = ["--pin-dir", "/sys/fs/bpf/table1"]
MASK_RULE = f"""\
add rule ip6 edge unmask tcp sport {PORTS[True]} tcp option timestamp tsval set tcp option timestamp tsval & 0xffff0000
"""
"""Substitute for the edge switch over TCP: it hides dynamic cookies from clients, whose timestamps would go back (docs/cookie.md)."""


@dataclass(frozen=True)
class Balancer:
    """An L7 load balancer, and the client that sends the requests of a plan to it."""

    name: str
    protocol: str
    serve: Callable[[Testbed, bool], contextlib.AbstractContextManager[object]]
    """Runs the server with or without CCLB7."""
    client: Callable[[Testbed], list[str | Path]]
    """Returns the command of the client."""
    calibration_rate: float
    """Load in bits/s at which the server's core time is first measured."""
    side_by_side: bool = False
    """The same servers, with and without CCLB7, serve all runs in turn. Otherwise, each run has a new server."""


@contextlib.contextmanager
def start_balancer_testbed() -> Iterator[Testbed]:
    """Start the testbed with a bpffs, control groups and the objects."""
    # The testbed mounts a new /sys, in which the agent would not find these control groups.
    subprocess.run(["umount", "--lazy", "/sys/fs/cgroup"], check=True)
    with start_testbed() as testbed:
        subprocess.run(["mount", "-t", "cgroup2", "none", "/sys/fs/cgroup"], check=True)
        subprocess.run(["mount", "-t", "bpf", "none", "/sys/fs/bpf"], check=True)
        subprocess.run([*testbed.enter, "nft", "-f", "-"], input=MASK_RULE, text=True, check=True)
        write_objects(testbed.folder / "objects", load_cdf().representatives())
        (testbed.folder / "content").write_bytes(pattern())
        yield testbed


@contextlib.contextmanager
def nginx(testbed: Testbed, cclb7: bool) -> Iterator[object]:
    """Run Debian's nginx, either unmodified or with CloudCookie module and eBPF agent."""
    port, directory = PORTS[cclb7], Path(tempfile.mkdtemp(dir=testbed.folder))
    module = os.environ.get("FRONTAGE_NGINX_MODULE", ROOT / "build" / "cclb7" / "ngx_http_cloudcookie_filter_module.so")
    names = {
        "directory": directory,
        "port": port,
        "name": "nginx",
        "root": testbed.folder,
        "objects": OBJECTS,
        "paced": PACED,
        "pace": PACE,
    }
    module_directives = {
        "modules": f"load_module {module};\n" if cclb7 else "",
        "reporting": "    cloudcookie on;\n" if cclb7 else "",
    }
    (directory / "nginx.conf").write_text(CONFIGURATION.format(**names, **module_directives))
    command: list[str | Path] = [NGINX, "-c", directory / "nginx.conf", "-e", directory / "error.log"]
    with agent(port) if cclb7 else contextlib.nullcontext(), testbed.server("nginx", port, command) as server:
        yield server


@contextlib.contextmanager
def nginx_without_tso(testbed: Testbed, cclb7: bool) -> Iterator[object]:
    """Run nginx without TSO: segments pass the agent one by one, not as a train that a network card splits."""
    _set_offload("off")
    try:
        with nginx(testbed, cclb7) as server:
            yield server
    finally:
        _set_offload("on")


def _set_offload(state: str) -> None:
    subprocess.run(["ethtool", "-K", "server", "tso", state, "gso", state], stdout=subprocess.DEVNULL, check=True)


@contextlib.contextmanager
def agent(port: int) -> Iterator[None]:
    """Attach the eBPF agent until the context ends. Raises RuntimeError if it has not written any cookie."""
    command = [program("FRONTAGE_CCLB7", "frontage-cclb7")]
    subprocess.run([*command, "attach", "--interface", "server", "--port", str(port), *PINS], stdout=subprocess.DEVNULL, check=True)
    try:
        yield
        stats = subprocess.run([*command, "stats", "--json", *PINS], stdout=subprocess.PIPE, check=True).stdout
        if not json.loads(stats)["packets"]["cookie_written"]:
            raise RuntimeError("frontage-cclb7: the agent has not written any cookie")
    finally:
        subprocess.run([*command, "detach", *PINS], stdout=subprocess.DEVNULL, check=True)


def quic(testbed: Testbed, cclb7: bool) -> contextlib.AbstractContextManager[object]:
    """Run frontage-cclb7-quic with or without a [cookie] section."""
    return testbed.cclb7_quic(f"quic-{cclb7}", PORTS[cclb7], cookie=cclb7)


def tcp_client(_: Testbed) -> list[str | Path]:
    return [sys.executable, "-m", "frontage_testbed.load.loadgen", "--path", OBJECTS]


def quic_client(testbed: Testbed) -> list[str | Path]:
    return [program("FRONTAGE_H3_CLIENT", "frontage-h3-client"), "plan", "--insecure", "--content", testbed.folder / "content"]


BALANCERS = (
    Balancer("tcp", "tcp", nginx, tcp_client, 2e9),
    Balancer("tcp_without_tso", "tcp", nginx_without_tso, tcp_client, 2e9),
    Balancer("quic", "quic", quic, quic_client, 2e8, side_by_side=True),
)
