# SPDX-License-Identifier: Apache-2.0
"""A testbed with a load balancer, real servers and an HTTP/3 client, each in its own network namespace, on one network.

The load balancer has its own core and may use only a share of it, so it is the bottleneck although all others share one core.
Run programs that use this module with `unshare --net --mount`; that namespace is the balancer's.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nginx
from frontage_testbed import handoffconfig as configuration
from frontage_testbed.certificate import issue_certificate, make_authority
from frontage_testbed.handoffconfig import ORIGIN_PORT, RealServer
from namespaces import PROCESS_TIMEOUT, child, core_ns, enter, namespace, pin, run, serving
from paths import program

BALANCER_CORE, OTHERS_CORE = 0, 1
PERIOD_US, QUOTA_US = 20_000, 1_000
"""The balancer may run for the quota in each period (CPU bandwidth control of control groups, version 1)."""
CONTROL_GROUPS = Path("/sys/fs/cgroup/cpu")
REAL_SERVERS = 3
BALANCER, CLIENT = "2001:db8::2", "2001:db8::1"
REAL = [RealServer(f"rs{n}", f"2001:db8::{11 + n}") for n in range(REAL_SERVERS)]
NAME = "lb"
"""Name in the balancer's certificate."""
NGINX_HTTP = "upstream real { " + " ".join(f"server [{real.address}]:{ORIGIN_PORT};" for real in REAL) + " keepalive 128; }"
NGINX_SERVER = """\
location / {
    proxy_pass http://real;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    # Do not buffer responses on disk.
    proxy_buffers 16 64k;
    proxy_buffer_size 64k;
    proxy_busy_buffers_size 128k;
    proxy_max_temp_file_size 0;
}
"""
"""Configuration of nginx as the same proxy."""


@dataclass(frozen=True)
class Run:
    """The cost of the downloads of one run."""

    requests: int
    core_ns: int
    """Nanoseconds of the balancer's core time, including the kernel's."""
    seconds: float
    p50: float
    """Median duration of a download in seconds."""


@dataclass(frozen=True)
class Balancer:
    """A running balancer."""

    testbed: Testbed
    port: int
    pid: int
    paths: int
    """Number of paths that a client opens to it."""

    def measure(self, size: int, seconds: float, connections: int, parallel: int) -> Run:
        """Start downloads of `size` bytes for so many seconds, and return the cost of all of them."""
        before = core_ns(self.pid)
        report = self.testbed.load(self, size, seconds, connections, parallel)
        return Run(report["requests"], core_ns(self.pid) - before, report["seconds"], report["latency"]["p50"])


class Testbed:
    """The namespaces, and a folder with objects, certificates and configurations."""

    def __init__(self, folder: Path, clients: int, group: Path) -> None:
        self.folder = folder
        self.clients = enter(clients)
        self._group = group

    def confine(self, pid: int) -> None:
        """Limit the process to the quota of its core from now on."""
        (self._group / "cgroup.procs").write_text(str(pid))

    def load(self, balancer: Balancer, size: int, seconds: float, connections: int, parallel: int) -> dict[str, Any]:
        """Run the client and return its report. Raises RuntimeError if a download fails."""
        url = f"https://[{BALANCER}]:{balancer.port}/{size}"
        options = [
            f"--connections={connections}",
            f"--parallel={parallel}",
            f"--seconds={seconds}",
            f"--expect={size}",
            "--insecure",
        ]
        client: list[str | Path] = [
            program("FRONTAGE_H3_CLIENT", "frontage-h3-client"),
            "load",
            url,
            *options,
            f"--paths={balancer.paths}",
        ]
        done = subprocess.run([*self.clients, *pin(OTHERS_CORE), *client], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"downloads of {url} failed: {done.stderr or done.stdout}")
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    @contextlib.contextmanager
    def balancer(self, name: str, port: int, route: str, paths: int) -> Iterator[Balancer]:
        """Run frontage-cclb7-quic until the context ends."""
        file = self.folder / f"{name}.toml"
        file.write_text(configuration.balancer(NAME, BALANCER, port) + route)
        command: list[str | Path] = [program("FRONTAGE_CCLB7_QUIC", "frontage-cclb7-quic"), file]
        with serving(self.folder / f"{name}.log", [*pin(BALANCER_CORE), *command], port) as pid:
            self.confine(pid)
            yield Balancer(self, port, pid, paths)

    def proxy(self, port: int) -> contextlib.AbstractContextManager[Balancer]:
        """Run the balancer as a proxy."""
        return self.balancer("proxy", port, configuration.proxied_route(REAL[0]), 1)

    def handoff(self, port: int, policy: str = "round-robin") -> contextlib.AbstractContextManager[Balancer]:
        """Run the balancer so that it hands requests over to the real servers by a policy."""
        section = configuration.handoff(NAME, REAL)
        return self.balancer(f"handoff-{policy}", port, section + configuration.handed_route(policy), 1 + REAL_SERVERS)

    @contextlib.contextmanager
    def nginx(self, port: int, root: Path) -> Iterator[Balancer]:
        """Run the nginx of a Debian root as a proxy."""
        command = nginx.command(root, self.folder, f"[{BALANCER}]:{port}", (f"{NAME}.pem", f"{NAME}.key"), NGINX_SERVER, NGINX_HTTP)
        with serving(self.folder / "nginx.log", [*pin(BALANCER_CORE), *command], port) as pid:
            worker = child(pid, "worker")
            self.confine(worker)
            yield Balancer(self, port, worker, 1)


@contextlib.contextmanager
def start_testbed(sizes: Sequence[int]) -> Iterator[Testbed]:
    """Start the network, with real servers that serve objects of these sizes in bytes, until the context ends."""
    if (os.cpu_count() or 1) <= max(BALANCER_CORE, OTHERS_CORE):
        raise RuntimeError("the balancer needs its own core: use a machine with two cores")
    with tempfile.TemporaryDirectory(prefix="frontage-bench-") as name, contextlib.ExitStack() as running:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "objects").mkdir()
        for size in sizes:
            (folder / "objects" / str(size)).write_bytes((bytes(n * 31 % 251 for n in range(1009)) * (size // 1009 + 1))[:size])
        make_authority(folder)
        group = running.enter_context(_group())
        run("mount -t sysfs none /sys")
        clients = running.enter_context(namespace())
        testbed = Testbed(folder, clients, group)
        client_prefix = " ".join(testbed.clients)
        run("ip link set lo up")
        run(f"{client_prefix} ip link add bridge type bridge")
        run(f"{client_prefix} ip link set bridge up")
        run(f"{client_prefix} ip -6 address add {CLIENT}/64 dev bridge nodad")
        _connect(clients, os.getpid(), NAME, BALANCER, BALANCER_CORE)
        issue_certificate(folder, NAME)
        for real in REAL:
            inside = running.enter_context(namespace())
            _connect(clients, inside, real.name, real.address, OTHERS_CORE)
            running.enter_context(_real_server(folder, real, inside))
        yield testbed


@contextlib.contextmanager
def _group() -> Iterator[Path]:
    """Create a control group that limits its processes to the quota of a core, until the context ends."""
    if not (CONTROL_GROUPS / "cpu.cfs_quota_us").exists():
        raise RuntimeError(f"{CONTROL_GROUPS}: CPU bandwidth control is missing, so the balancer's core time cannot be limited")
    # A path through the file descriptor is valid even after a new /sys is mounted.
    top = os.open(CONTROL_GROUPS, os.O_PATH)
    group = Path(f"/proc/{os.getpid()}/fd/{top}") / f"frontage-bench-{os.getpid()}"
    group.mkdir()
    try:
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(QUOTA_US))
        yield group
    finally:
        deadline = time.monotonic() + PROCESS_TIMEOUT
        while (group / "cgroup.procs").read_text() and time.monotonic() < deadline:
            time.sleep(0.02)
        group.rmdir()
        os.close(top)


def _connect(bridge: int, inside: int, name: str, address: str, core: int) -> None:
    """Connect namespace `inside` with the bridge; each end receives on its own core."""
    outer, inner = " ".join(enter(bridge)), " ".join(enter(inside))
    run(f"{outer} ip link add {name} type veth peer name eth0 netns {inside}")
    run(f"{outer} ip link set {name} master bridge up")
    run(f"{inner} ip -6 address add {address}/64 dev eth0 nodad")
    # Real servers send neighbor solicitations from a link-local address, because they send packets from the balancer's address.
    # Without duplicate address detection, the link-local address is usable at once.
    run(f"{inner} tee /proc/sys/net/ipv6/conf/eth0/accept_dad", "0")
    run(f"{inner} ip link set eth0 up")
    run(f"{outer} tee /sys/class/net/{name}/queues/rx-0/rps_cpus", f"{1 << OTHERS_CORE:x}")
    run(f"{inner} tee /sys/class/net/eth0/queues/rx-0/rps_cpus", f"{1 << core:x}")


def _real_server(folder: Path, real: RealServer, inside: int) -> contextlib.AbstractContextManager[int]:
    issue_certificate(folder, real.name)
    file = folder / f"{real.name}.toml"
    file.write_text(configuration.real_server(real, [NAME]))
    command: list[str | Path] = [*pin(OTHERS_CORE), program("FRONTAGE_REAL_SERVER", "frontage-real-server"), file]
    return serving(folder / f"{real.name}.log", command, ORIGIN_PORT, enter(inside))
