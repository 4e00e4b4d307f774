# SPDX-License-Identifier: Apache-2.0
"""A load balancer, real servers and a client of HTTP/3, each in a network namespace of its own, on one network. The load balancer has a
core of its own, of which it gets a part only, so that it is what all others wait for, though these share one core. To be run by
`unshare --net --mount`, which is the balancer's namespace."""

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
from namespaces import PATIENCE, child, core_ns, enter, namespace, pin, run, serving
from paths import program

BALANCER_CORE, OTHERS_CORE = 0, 1
PERIOD_US, QUOTA_US = 20_000, 1_000
"""The balancer may run for so long of each such time (CPU bandwidth control of control groups, version 1)."""
CONTROL_GROUPS = Path("/sys/fs/cgroup/cpu")
REAL_SERVERS = 3
BALANCER, CLIENT = "2001:db8::2", "2001:db8::1"
REAL = [RealServer(f"rs{n}", f"2001:db8::{11 + n}") for n in range(REAL_SERVERS)]
NAME = "lb"
"""The balancer's, in its certificate."""
NGINX_HTTP = "upstream real { " + " ".join(f"server [{real.address}]:{ORIGIN_PORT};" for real in REAL) + " keepalive 128; }"
NGINX_SERVER = """\
location / {
    proxy_pass http://real;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    # What does not fit is not put on a disk.
    proxy_buffers 16 64k;
    proxy_buffer_size 64k;
    proxy_busy_buffers_size 128k;
    proxy_max_temp_file_size 0;
}
"""
"""The same proxy with nginx."""


@dataclass(frozen=True)
class Turn:
    """What some downloads took."""

    requests: int
    core_ns: int
    """Of the balancer's core, its kernel's time for it included."""
    seconds: float
    p50: float
    """Seconds that a download took, median."""


@dataclass(frozen=True)
class Form:
    """A balancer that runs."""

    lab: Lab
    port: int
    pid: int
    paths: int
    """That a client opens to it."""

    def turn(self, size: int, seconds: float, connections: int, parallel: int) -> Turn:
        before = core_ns(self.pid)
        said = self.lab.load(self, size, seconds, connections, parallel)
        return Turn(said["requests"], core_ns(self.pid) - before, said["seconds"], said["latency"]["p50"])


class Lab:
    """Where they are."""

    def __init__(self, folder: Path, clients: int, group: Path) -> None:
        self.folder = folder
        self.clients = enter(clients)
        self._group = group

    def confine(self, pid: int) -> None:
        """From now on the process gets a part of its core only."""
        (self._group / "cgroup.procs").write_text(str(pid))

    def load(self, form: Form, size: int, seconds: float, connections: int, parallel: int) -> dict[str, Any]:
        """What the client says of the downloads that it began in this time, all of which came."""
        url = f"https://[{BALANCER}]:{form.port}/{size}"
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
            f"--paths={form.paths}",
        ]
        done = subprocess.run([*self.clients, *pin(OTHERS_CORE), *client], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"downloads of {url} failed: {done.stderr or done.stdout}")
        said: dict[str, Any] = json.loads(done.stdout)
        return said

    @contextlib.contextmanager
    def balancer(self, name: str, port: int, route: str, paths: int) -> Iterator[Form]:
        """frontage-cclb7-quic until the end."""
        file = self.folder / f"{name}.toml"
        file.write_text(configuration.balancer(NAME, BALANCER, port) + route)
        command: list[str | Path] = [program("FRONTAGE_CCLB7_QUIC", "frontage-cclb7-quic"), file]
        with serving(self.folder / f"{name}.log", [*pin(BALANCER_CORE), *command], port) as pid:
            self.confine(pid)
            yield Form(self, port, pid, paths)

    def proxy(self, port: int) -> contextlib.AbstractContextManager[Form]:
        """As a proxy."""
        return self.balancer("proxy", port, configuration.proxied_route(REAL[0]), 1)

    def handoff(self, port: int, below: str = "") -> contextlib.AbstractContextManager[Form]:
        """That hands requests over, if their answers are not `below` so many bytes."""
        section = configuration.handoff(NAME, REAL, f'min_size = "{below}"\n' if below else "")
        return self.balancer(f"handoff{below}", port, section + configuration.handed_route("round-robin"), 1 + REAL_SERVERS)

    @contextlib.contextmanager
    def nginx(self, port: int, root: Path) -> Iterator[Form]:
        """The nginx of a Debian root as a proxy."""
        command = nginx.command(root, self.folder, f"[{BALANCER}]:{port}", (f"{NAME}.pem", f"{NAME}.key"), NGINX_SERVER, NGINX_HTTP)
        with serving(self.folder / "nginx.log", [*pin(BALANCER_CORE), *command], port) as pid:
            worker = child(pid, "worker")
            self.confine(worker)
            yield Form(self, port, worker, 1)


@contextlib.contextmanager
def lab(sizes: Sequence[int]) -> Iterator[Lab]:
    """The network, with real servers that serve objects of these sizes, in bytes."""
    if (os.cpu_count() or 1) <= max(BALANCER_CORE, OTHERS_CORE):
        raise RuntimeError("the balancer needs a core of its own")
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
        found = Lab(folder, clients, group)
        there = " ".join(found.clients)
        run("ip link set lo up")
        run(f"{there} ip link add bridge type bridge")
        run(f"{there} ip link set bridge up")
        run(f"{there} ip -6 address add {CLIENT}/64 dev bridge nodad")
        _connect(clients, os.getpid(), NAME, BALANCER, BALANCER_CORE)
        issue_certificate(folder, NAME)
        for real in REAL:
            inside = running.enter_context(namespace())
            _connect(clients, inside, real.name, real.address, OTHERS_CORE)
            running.enter_context(_real_server(folder, real, inside))
        yield found


@contextlib.contextmanager
def _group() -> Iterator[Path]:
    """A control group whose processes get a part of a core only, until the end."""
    if not (CONTROL_GROUPS / "cpu.cfs_quota_us").exists():
        raise RuntimeError(f"{CONTROL_GROUPS} has no CPU bandwidth control: the balancer cannot be held to a part of its core")
    # By this it is found below the namespace's own /sys, too.
    top = os.open(CONTROL_GROUPS, os.O_PATH)
    group = Path(f"/proc/{os.getpid()}/fd/{top}") / f"frontage-bench-{os.getpid()}"
    group.mkdir()
    try:
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(QUOTA_US))
        yield group
    finally:
        deadline = time.monotonic() + PATIENCE
        while (group / "cgroup.procs").read_text() and time.monotonic() < deadline:
            time.sleep(0.02)
        group.rmdir()
        os.close(top)


def _connect(bridge: int, inside: int, name: str, address: str, core: int) -> None:
    """Each end receives on its own core."""
    there, here = " ".join(enter(bridge)), " ".join(enter(inside))
    run(f"{there} ip link add {name} type veth peer name eth0 netns {inside}")
    run(f"{there} ip link set {name} master bridge up")
    run(f"{here} ip -6 address add {address}/64 dev eth0 nodad")
    # Real servers ask for neighbours by a link-local address, since the one that they send from is not theirs; it is to be there at once.
    run(f"{here} tee /proc/sys/net/ipv6/conf/eth0/accept_dad", "0")
    run(f"{here} ip link set eth0 up")
    run(f"{there} tee /sys/class/net/{name}/queues/rx-0/rps_cpus", f"{1 << OTHERS_CORE:x}")
    run(f"{here} tee /sys/class/net/eth0/queues/rx-0/rps_cpus", f"{1 << core:x}")


def _real_server(folder: Path, real: RealServer, inside: int) -> contextlib.AbstractContextManager[int]:
    issue_certificate(folder, real.name)
    file = folder / f"{real.name}.toml"
    file.write_text(configuration.real_server(real, NAME))
    command: list[str | Path] = [*pin(OTHERS_CORE), program("FRONTAGE_REAL_SERVER", "frontage-real-server"), file]
    return serving(folder / f"{real.name}.log", command, ORIGIN_PORT, enter(inside))
