# SPDX-License-Identifier: Apache-2.0
"""A testbed with a balancer that delegates, the same balancer as a proxy, and real servers, over softswitch's links."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from frontage_testbed import handoffconfig as configuration
from frontage_testbed.certificate import issue_certificate, make_authority
from frontage_testbed.handoffconfig import ORIGIN_PORT
from frontage_testbed.metricsclient import parse
from frontage_testbed.nodes import Namespace, Network, NodeError
from frontage_testbed.processes import serve
from frontage_testbed.programs import ours
from frontage_testbed.wires import Wires

from .topology import BALANCER, BALANCER_ADDRESS, CLIENT, CLIENT_ADDRESS, Site, Triangle

READY_TIMEOUT = 20.0
METRICS = "127.0.0.1:9153"
HANDOFF, PROXY = "hand-off", "proxy"
ONE_PATH = "hand-off, one path"
"""The delegating balancer, with a client without multipath."""
FORMS = (PROXY, HANDOFF)
PORTS = {HANDOFF: 443, PROXY: 444}
"""UDP port of each balancer."""


@dataclass(frozen=True)
class Programs:
    """Paths of our own programs."""

    switch: Path
    compiler: Path
    balancer: Path
    real_server: Path
    client: Path

    @classmethod
    def of(cls, folder: Path) -> Programs:
        """Find the programs in `folder`. Raises NodeError if one is missing."""
        names = ("softswitch", "softswitch-p4c", "frontage-cclb7-quic", "frontage-real-server", "frontage-h3-client")
        return cls(*ours(folder, *names))


@dataclass(frozen=True)
class Testbed:
    """A running testbed."""

    folder: Path
    programs: Programs
    hosts: Mapping[str, Namespace]
    paths: int
    """Paths that the client opens where requests are delegated."""
    balancers: dict[str, int] = field(default_factory=dict)
    """Process ids of the balancers, by form."""

    @property
    def client(self) -> Namespace:
        """Namespace of the clients."""
        return self.hosts[CLIENT]

    def command(self, form: str, what: str, sizes: Sequence[int | str], *options: str) -> list[str | Path]:
        """Return the command of a client that downloads objects of these sizes; a size may have a query."""
        urls = [f"https://[{BALANCER_ADDRESS}]:{PORTS.get(form, PORTS[HANDOFF])}/{size}" for size in sizes]
        paths = self.paths if form == HANDOFF else 1
        return [self.programs.client, what, *urls, "--insecure", *([f"--paths={paths}"] if paths > 1 else []), *options]

    def get(self, form: str, sizes: Sequence[int | str], *options: str) -> list[dict[str, Any]]:
        """Download one object after the other, without `options` over one connection, and return a report for each. Raises
        NodeError.
        """
        output = self.client.run(self.command(form, "get", sizes, *options)).stdout
        return [json.loads(line) for line in output.splitlines()]

    def load(self, form: str, size: int, *options: str) -> dict[str, Any]:
        """Download over several connections or in parallel and return a summary. Raises NodeError."""
        report: dict[str, Any] = json.loads(self.client.run(self.command(form, "load", [size], *options)).stdout)
        return report

    def handed(self) -> int:
        """Return how many requests real servers have answered completely."""
        return self._total("frontage_cclb7_quic_real_server_answers_total")

    def kept(self, **labels: str) -> int:
        """Return how many requests the delegating balancer has answered itself."""
        return self._total("frontage_cclb7_quic_handoff_local_total", **labels)

    def _total(self, name: str, **labels: str) -> int:
        """Return the total of a metric of the delegating balancer."""
        return int(parse(self.hosts[BALANCER].run(["curl", "-s", f"http://{METRICS}/metrics"]).stdout).total(name, **labels))


class Ground:
    """Hosts and wires for several testbeds, one after the other. `server_fields` are additional fields of the real servers'
    configuration.
    """

    def __init__(
        self,
        topology: type[Triangle | Site],
        programs: Programs,
        scratch: Path,
        sizes: Sequence[int],
        server_fields: str = "",
    ) -> None:
        self._programs, self._topology, self._server_fields = programs, topology, server_fields
        self._folder = scratch / topology.__name__.lower()
        (self._folder / "objects").mkdir(parents=True)
        for size in sizes:
            (self._folder / "objects" / str(size)).write_bytes((bytes(range(251)) * (size // 251 + 1))[:size])
        make_authority(self._folder)
        for name in (BALANCER, *(real.name for real in topology.real_servers)):
            issue_certificate(self._folder, name)
        self._wires = Wires(programs.switch, programs.compiler, self._folder)
        self._network = Network(topology())
        self._network.start()

    def close(self) -> None:
        """Remove the hosts and the wires."""
        self._network.stop()

    @contextlib.contextmanager
    def testbed(self, links: Mapping[int, str], seed: int, fields: str = "", handoff: str = "") -> Iterator[Testbed]:
        """Run a testbed within a context. `links` are softswitch's link options by port, `fields` are additional fields of the
        balancers' configuration, and `handoff` those of its section [handoff].
        """
        real = self._topology.real_servers
        names = (CLIENT, BALANCER, *(r.name for r in real))
        hosts = {name: self._network.get(name) for name in names}
        testbed = Testbed(self._folder, self._programs, hosts, 1 + len(real))
        ports = range(2, 4) if self._topology is Site else range(2, 8)
        with contextlib.ExitStack() as running:
            running.callback(_end, self._wires.start(ports, links, seed))
            for server in real:
                text = configuration.real_server(server, [BALANCER], self._server_fields)
                self._start(running, testbed, server.name, server.name, self._programs.real_server, text, ORIGIN_PORT)
            for form, port in PORTS.items():
                text = self._balancer(form, port, fields, handoff)
                process = self._start(running, testbed, BALANCER, form, self._programs.balancer, text, port)
                testbed.balancers[form] = process.pid
            _wait_until_reachable(testbed, len(real))
            yield testbed

    def _balancer(self, form: str, port: int, fields: str, handoff: str) -> str:
        """Return the configuration of the balancer for a form."""
        real = self._topology.real_servers
        if form == PROXY:
            return configuration.balancer(BALANCER, BALANCER_ADDRESS, port, fields) + configuration.proxied_route(real[0])
        begin = configuration.balancer(BALANCER, BALANCER_ADDRESS, port, f'metrics = "{METRICS}"\n{fields}')
        return begin + configuration.handoff(BALANCER, real, handoff) + configuration.handed_route("round-robin")

    def _start(
        self, running: contextlib.ExitStack, testbed: Testbed, host: str, name: str, program: Path, text: str, port: int
    ) -> subprocess.Popen[bytes]:
        file = self._folder / f"{name}.toml"
        file.write_text(text)
        process = serve(testbed.hosts[host], name, [program, file], port, self._folder)
        running.callback(_end, process)
        return process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _wait_until_reachable(testbed: Testbed, real_servers: int) -> None:
    """Wait until neighbors are resolved and the balancer is connected to its real servers."""
    deadline = time.monotonic() + READY_TIMEOUT
    while True:
        with contextlib.suppress(NodeError):
            testbed.hosts["rs1"].run(["ping", "-n", "-c", "1", "-W", "1", CLIENT_ADDRESS])
            page = parse(testbed.hosts[BALANCER].run(["curl", "-s", f"http://{METRICS}/metrics"]).stdout)
            if page.total("frontage_cclb7_quic_real_server_up") == real_servers:
                return
        if time.monotonic() > deadline:
            raise NodeError(f"client and real servers do not reach each other within {READY_TIMEOUT:g} s")
        time.sleep(0.05)
