# SPDX-License-Identifier: Apache-2.0
"""L7 load balancers with and without CCLB7, for table1.py, and the demo's clients for them: each in its namespace of the lab."""

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
from http3 import Lab, lab
from paths import ROOT, program

PORTS = {False: 8080, True: 8081}
"""Of the server without CCLB7, and with it."""
PINS = ["--pin-dir", "/sys/fs/bpf/table1"]
MASK = f"""\
add rule ip6 edge unmask tcp sport {PORTS[True]} tcp option timestamp tsval set tcp option timestamp tsval & 0xffff0000
"""
"""The edge switch's part over TCP: clients see no dynamic cookie, which would go back in time (docs/cookie.md)."""


@dataclass(frozen=True)
class Balancer:
    """A server, and the client that loads it with a plan."""

    name: str
    protocol: str
    serve: Callable[[Lab, bool], contextlib.AbstractContextManager[object]]
    """With CCLB7 or without."""
    client: Callable[[Lab], list[str | Path]]
    """Its command."""
    trial: float
    """Bits/s at which to see what the server needs."""


@contextlib.contextmanager
def world() -> Iterator[Lab]:
    """The lab with a bpffs, control groups and the objects."""
    # The lab's own /sys would hide these control groups, and the agent look for them there.
    subprocess.run(["umount", "--lazy", "/sys/fs/cgroup"], check=True)
    with lab() as here:
        subprocess.run(["mount", "-t", "cgroup2", "none", "/sys/fs/cgroup"], check=True)
        subprocess.run(["mount", "-t", "bpf", "none", "/sys/fs/bpf"], check=True)
        subprocess.run([*here.enter, "nft", "-f", "-"], input=MASK, text=True, check=True)
        write_objects(here.folder / "objects", load_cdf().representatives())
        (here.folder / "content").write_bytes(pattern())
        yield here


@contextlib.contextmanager
def nginx(here: Lab, cclb7: bool) -> Iterator[object]:
    """Debian's, with our module and the eBPF agent or as it comes."""
    port, directory = PORTS[cclb7], Path(tempfile.mkdtemp(dir=here.folder))
    module = os.environ.get("FRONTAGE_NGINX_MODULE", ROOT / "build" / "cclb7" / "ngx_http_cloudcookie_filter_module.so")
    names = {
        "directory": directory,
        "port": port,
        "name": "nginx",
        "root": here.folder,
        "objects": OBJECTS,
        "paced": PACED,
        "pace": PACE,
    }
    on = {"modules": f"load_module {module};\n" if cclb7 else "", "reporting": "    cloudcookie on;\n" if cclb7 else ""}
    (directory / "nginx.conf").write_text(CONFIGURATION.format(**names, **on))
    command: list[str | Path] = [NGINX, "-c", directory / "nginx.conf", "-e", directory / "error.log"]
    with agent(port) if cclb7 else contextlib.nullcontext(), here.server("nginx", port, command) as server:
        yield server


@contextlib.contextmanager
def nginx_without_tso(here: Lab, cclb7: bool) -> Iterator[object]:
    """Each segment passes the agent by itself, where a card would be given a train of them to cut (TSO)."""
    _offload("off")
    try:
        with nginx(here, cclb7) as server:
            yield server
    finally:
        _offload("on")


def _offload(state: str) -> None:
    subprocess.run(["ethtool", "-K", "server", "tso", state, "gso", state], stdout=subprocess.DEVNULL, check=True)


@contextlib.contextmanager
def agent(port: int) -> Iterator[None]:
    command = [program("FRONTAGE_CCLB7", "frontage-cclb7")]
    subprocess.run([*command, "attach", "--interface", "server", "--port", str(port), *PINS], stdout=subprocess.DEVNULL, check=True)
    try:
        yield
        stats = subprocess.run([*command, "stats", "--json", *PINS], stdout=subprocess.PIPE, check=True).stdout
        if not json.loads(stats)["packets"]["cookie_written"]:
            raise RuntimeError("the agent has written no cookie")
    finally:
        subprocess.run([*command, "detach", *PINS], stdout=subprocess.DEVNULL, check=True)


def quic(here: Lab, cclb7: bool) -> contextlib.AbstractContextManager[object]:
    """frontage-cclb7-quic with its [cookie] or without."""
    return here.ours(f"quic-{cclb7}", PORTS[cclb7], cookie=cclb7)


def tcp_client(_: Lab) -> list[str | Path]:
    return [sys.executable, "-m", "frontage_testbed.load.loadgen", "--path", OBJECTS]


def quic_client(here: Lab) -> list[str | Path]:
    return [program("FRONTAGE_H3_CLIENT", "frontage-h3-client"), "plan", "--insecure", "--content", here.folder / "content"]


BALANCERS = (
    Balancer("tcp", "tcp", nginx, tcp_client, 2e9),
    Balancer("tcp_without_tso", "tcp", nginx_without_tso, tcp_client, 2e9),
    Balancer("quic", "quic", quic, quic_client, 2e8),
)
