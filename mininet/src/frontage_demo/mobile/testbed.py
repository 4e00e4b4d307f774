# SPDX-License-Identifier: Apache-2.0
"""A running testbed: nats-servers, record servers of three sites, both proxies, and hosts that change their addresses."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from frontage_testbed.natsservers import Node, Servers
from frontage_testbed.nodes import Namespace, Network, NodeError, run_script
from frontage_testbed.processes import serve
from frontage_testbed.programs import ours
from frontage_testbed.wires import Wires

from .topology import CLIENT, FIRST_HOST, MOBILE, ONE_WAY_MS, PREFIXES, ROUTER, Mobile, default_route

NAME = "laptop.example"
SITES = (1, 2, 3)
FORWARD_PORT, LOCAL_PORT, CARRIER_PORT, METRICS_PORT = 8000, 8001, 7000, 9464
"""Ports of the service, of the client's local end, of the server's carriers, and of the metrics of both proxies."""
NATS_PORT, RECORDS_PORT = 4000, 8480
READY_TIMEOUT = 60.0


@dataclass(frozen=True)
class Programs:
    """Paths of the programs that the testbed runs."""

    switch: Path
    compiler: Path
    mobile: Path
    nats: Path

    @classmethod
    def of(cls, folder: Path, nats: Path) -> Programs:
        """Find our programs in `folder`. Raises NodeError if one is missing."""
        switch, compiler, mobile = ours(folder, "softswitch", "softswitch-p4c", "frontage-mobile")
        if not nats.is_file():
            raise NodeError(f"{nats} is missing: `make build/nats-server` builds it")
        return cls(switch, compiler, mobile, nats)


@dataclass
class Testbed:
    """A running testbed."""

    folder: Path
    programs: Programs
    hosts: dict[str, Namespace]
    numbers: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PREFIXES, FIRST_HOST))
    """Number of each host's present address."""

    def address(self, host: str) -> str:
        """Return a host's present address."""
        return f"{PREFIXES[host]}{self.numbers[host]:x}"

    def move(self, host: str) -> float:
        """Take a host's address away, then give it a new one. Return the monotonic time at the beginning."""
        old = self.address(host)
        self.numbers[host] += 1
        began = time.monotonic()
        lines = [f"ip addr del {old}/64 dev eth0", f"ip addr add {self.address(host)}/64 dev eth0 nodad", default_route(host)]
        run_script(host, lines, self.hosts[host].pid)
        return began

    @property
    def key(self) -> Path:
        """File with the key of both proxies."""
        return self.folder / "mobile.key"

    def options(self, host: str, sites: Sequence[int]) -> list[str | Path]:
        """Return the options of a host's proxy that both commands have, with the record servers of some sites."""
        urls = [f"http://[{PREFIXES[host]}1]:{RECORDS_PORT + site}" for site in sites]
        records = [part for url in urls for part in ("--records", url)]
        return [NAME, *records, "--key", self.key, "--log-level", "frontage_mobile=debug"]

    def metrics(self, host: str) -> dict[str, float]:
        """Return the metrics of a host's proxy by name and labels."""
        text = self.hosts[host].run(["curl", "-s", f"http://[::1]:{METRICS_PORT}/metrics"]).stdout
        lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
        return {name.removeprefix("frontage_mobile_"): float(value) for name, _, value in lines}

    def published(self) -> list[str]:
        """Return the addresses in the record at the last site."""
        url = f"http://[::1]:{RECORDS_PORT + SITES[-1]}/records/{NAME}"
        answer = self.hosts[ROUTER].run(["curl", "-s", url]).stdout
        document = json.loads(answer).get("value") or {}
        return list(document.get("address", []))


@contextlib.contextmanager
def bring_up(programs: Programs, folder: Path, wires: bool) -> Iterator[Testbed]:
    """Run a testbed within a context. Its processes end with the namespaces of the caller.

    `wires`: with the delays of the paper. The service itself, port `FORWARD_PORT` of the mobile host, is the caller's.
    """
    folder.mkdir()
    network = Network(Mobile(wires=wires))
    network.start()
    testbed = Testbed(folder, programs, {name: network.get(name) for name in (CLIENT, ROUTER, MOBILE)})
    if wires:
        links = {port: f"delay={round(delay * 1000)}us" for port, delay in ONE_WAY_MS.items()}
        Wires(programs.switch, programs.compiler, folder).start([*links], links, seed=1)
    servers = _start_nats(testbed)
    try:
        _start_record_servers(testbed)
        _start_proxies(testbed)
        yield testbed
    finally:
        servers.stop()


def _start_nats(testbed: Testbed) -> Servers:
    router = testbed.hosts[ROUTER]

    def run(_: Node, file: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
        return router.spawn(["env", "GOMAXPROCS=1", testbed.programs.nats, "-c", file], stdout=log, stderr=log)

    nodes = [Node(f"s{site}", "records", (site,), "::1", *(NATS_PORT + 10 * site + n for n in range(3))) for site in SITES]
    servers = Servers(testbed.folder, nodes, run)
    servers.start_all()
    return servers


def _start_record_servers(testbed: Testbed) -> None:
    frontage = Path(sys.executable).with_name("frontage")
    for site in SITES:
        config = testbed.folder / f"records-{site}.yaml"
        config.write_text(_configuration(site))
        command: list[str | Path] = [frontage, "records", "serve", "-c", config]
        serve(testbed.hosts[ROUTER], f"records-{site}", command, RECORDS_PORT + site, testbed.folder)


def _configuration(site: int) -> str:
    """Return the configuration of a record server, which uses only the sites and the section `records`."""
    sites = "".join(
        f'  - {{ id: {one}, name: site{one}, vtep: "2001:db8:10{one}::1", sids: [{100 * one}, {100 * one + 99}] }}\n'
        for one in SITES
    )
    return f"""\
device:
  {{ address: "127.0.0.1:9559", device_id: 1, cpu_port: 510, pipeline: {{ p4info: p4info.txtpb, json: frontage.json }} }}
ports:
  - {{ id: 1, name: wan, role: site, mac: "02:00:00:00:01:01", gateways: ["2001:db8:1::1/64"] }}
routes:
  - {{ prefix: "2001:db8:100::/44", port: wan, next_hop: "2001:db8:1::fe" }}
keys:
  - {{ id: 1, secret: 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f }}
site: {{ id: {site}, vtep: "2001:db8:10{site}::1" }}
sites:
{sites}records:
  listen: "[::]:{RECORDS_PORT + site}"
  store: nats://[::1]:{NATS_PORT + 10 * site}
  replicas: 1
"""


def _start_proxies(testbed: Testbed) -> None:
    key, program = testbed.key, testbed.programs.mobile
    key.touch(mode=0o600)
    key.write_text(subprocess.run([program, "key"], capture_output=True, text=True, check=True).stdout)
    # The service publishes at the first site, and the client follows the second.
    listen = [program, "listen", *testbed.options(MOBILE, SITES)]
    metrics = ["--metrics", f"[::1]:{METRICS_PORT}"]
    listen += [*metrics, "--forward", f"127.0.0.1:{FORWARD_PORT}", "--listen", f"[::]:{CARRIER_PORT}", "--interface", "eth0"]
    serve(testbed.hosts[MOBILE], "listen", listen, CARRIER_PORT, testbed.folder)
    connect = [program, "connect", *testbed.options(CLIENT, SITES[1:]), "--listen", f"127.0.0.1:{LOCAL_PORT}", *metrics]
    serve(testbed.hosts[CLIENT], "connect", connect, LOCAL_PORT, testbed.folder)
    wait_until_published(testbed)


def wait_until_published(testbed: Testbed) -> None:
    """Wait until the record has the mobile host's address. Raises NodeError."""
    deadline = time.monotonic() + READY_TIMEOUT
    while testbed.published() != [testbed.address(MOBILE)]:
        if time.monotonic() > deadline:
            raise NodeError(f"the record has no address of the mobile host after {READY_TIMEOUT:.0f} s")
        time.sleep(0.05)
