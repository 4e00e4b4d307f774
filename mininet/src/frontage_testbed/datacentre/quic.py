# SPDX-License-Identifier: Apache-2.0
"""A testbed with QUIC servers: `frontage-cclb7-quic` on every server host, with the switch's cookie keys."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from ipaddress import ip_address, ip_network
from pathlib import Path

from frontage.cookie import CookieKey

from ..certificate import make_certificate
from ..load.objects import pattern
from ..load.outcome import Outcome
from ..load.workload import Arrival
from ..nodes import NodeError
from .addresses import COOKIE_PREFIX, QUIC_PORT, QUIC_SERVER_PORT, QUIC_VIP6, ServerAddresses
from .clients import Generator
from .configuration import LOOK_AHEAD
from .edge import EdgeSwitch
from .quicagents import ACTIVE_FLOWS, METRICS, QuicAgents
from .settings import Settings
from .testbed import READY_TIMEOUT, Testbed

LOG_DELAY = 60.0
"""Seconds within which the lines of answered requests are in the servers' logs."""

CONFIGURATION = """\
listen = ["[::]:{server_port}", "0.0.0.0:{server_port}"]
certificate = "certificate.pem"
private_key = "key.pem"
metrics = "{metrics}"
access_log = "{directory}/{name}.json"
{fields}
[cookie]
sid = {sid6}
sid_v4 = {sid4}
server_prefix = "{server_prefix}"
cookie_prefix = "{cookie_prefix}"
port = {port}
keys = "keys.toml"
bandwidth = "{bandwidth}kbit"
look_ahead = "{look_ahead}kB"

{routes}"""


class QuicTestbed(Testbed):
    """A testbed that answers HTTP/3 requests to the QUIC VIPs, inside its context."""

    routes = '[[route]]\npath = "/"\ndirectory = "../objects"\n'
    """Routes in the servers' configuration."""
    fields = ""
    """Additional fields of the servers' configuration, outside its sections."""
    metrics_address = METRICS[0]
    """Address at which the servers export their metrics."""
    active_flows = ACTIVE_FLOWS
    """Name of the servers' metric of N_AF."""

    def __init__(self, settings: Settings, scratch: Path, edge: EdgeSwitch, server: Path, client: Path) -> None:
        super().__init__(settings, scratch, edge, QuicAgents(self.active_flows))
        self._server = server
        self.h3_client = client
        self._directory = scratch / "quic"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._logs_read: Counter[str] = Counter()

    @property
    def key_file(self) -> Path:
        """The key file of the servers."""
        return self._directory / "keys.toml"

    @property
    def server_pids(self) -> list[int]:
        """Process ids of the servers."""
        return [process.pid for process in self._processes]

    def is_cookie_address(self, address: str, keys: Iterable[CookieKey]) -> bool:
        """Return whether an address holds the static cookie of one of the servers under one of these keys."""
        if ip_address(address) not in ip_network(COOKIE_PREFIX):
            return False
        opened = [key.open_ip6(int(ip_address(address)) & (1 << 64) - 1) for key in keys]
        sids = {server.sid6 for server in self.server_addresses}
        return any(cookie and not cookie.dynamic and cookie.sid in sids for cookie in opened)

    def answers(self) -> dict[str, int]:
        """Return how many requests each server has answered, by name."""
        return {server.name: len(self._log(server.name)) for server in self.server_addresses}

    def _log(self, name: str) -> list[str]:
        # The last line may not be complete yet.
        return (self._directory / f"{name}.json").read_text().split("\n")[:-1]

    def offer_objects(self, sizes: Iterable[int]) -> None:
        """Have the servers serve objects of these sizes, and give the clients their content."""
        super().offer_objects(sizes)
        (self.scratch / "content").write_bytes(pattern())

    def generator(self, plan: Path) -> Generator:
        """Return `frontage-h3-client` with the VIP that has a cookie prefix.

        Every second client follows the servers' preferred addresses; the others stay at the VIP.
        """

        def command(index: int, start_ns: int) -> list[str | Path]:
            command: list[str | Path] = [self.h3_client, "plan", "--plan", plan, "--content", self.scratch / "content"]
            command += ["--client", str(index), "--start-ns", str(start_ns)]
            command += ["--address", QUIC_VIP6, "--port", str(QUIC_PORT), "--insecure"]
            return [*command, "--follow"] if index % 2 else command

        return command

    def with_servers(self, plan: Sequence[Arrival], outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
        """Return the outcomes with the server that answered each, from the servers' logs since the last call."""
        answered: dict[tuple[str, str], str] = {}
        deadline = time.monotonic() + LOG_DELAY
        while len(answered) < sum(o.ok for o in outcomes) and time.monotonic() < deadline:
            for server in self.server_addresses:
                for line in map(json.loads, self._log(server.name)[self._logs_read[server.name] :]):
                    answered[line["client"], line["path"]] = server.name
            time.sleep(0.05)
        self._logs_read.update({name: count - self._logs_read[name] for name, count in self.answers().items()})

        def server_of(outcome: Outcome) -> str:
            arrival = plan[outcome.index]
            client = f"[{self.client_addresses[arrival.client].address6}]:{outcome.local_port}"
            return answered.get((client, f"/{arrival.wire_size}"), "")

        return tuple(replace(o, server=server_of(o)) for o in outcomes)

    def retransmitted(self) -> None:
        """Return None: the servers do not report retransmissions."""

    def _start_servers(self) -> None:
        self._prepare()
        for server in self.server_addresses:
            self._start_balancer(server)

    def _prepare(self) -> None:
        """Write the files that the servers' configurations refer to."""
        self._directory.mkdir()
        make_certificate(self._directory, "/CN=films")
        self.edge.write_keys(self.key_file)

    def _route(self, server: ServerAddresses) -> None:
        """Make all addresses of a server's /64 local."""
        self.servers[server.index].run(["ip", "-6", "route", "add", "local", server.quic_prefix, "dev", "lo"])

    def _start_balancer(self, server: ServerAddresses) -> None:
        self._route(server)
        configuration = CONFIGURATION.format(
            name=server.name,
            directory=self._directory,
            metrics=f"{self.metrics_address}:{METRICS[1]}",
            fields=self.fields,
            server_port=QUIC_SERVER_PORT,
            port=QUIC_PORT,
            sid6=server.sid6,
            sid4=server.sid4,
            server_prefix=server.quic_prefix,
            cookie_prefix=COOKIE_PREFIX,
            bandwidth=self.settings.server_rate // 1000,
            look_ahead=LOOK_AHEAD // 1000,
            routes=self.routes,
        )
        self._start(server, self._server, configuration)

    def _start(self, server: ServerAddresses, program: Path, configuration: str) -> None:
        (self._directory / f"{server.name}.toml").write_text(configuration)
        self._processes.append(self._spawn(server, program))

    def _spawn(self, server: ServerAddresses, program: Path) -> subprocess.Popen[bytes]:
        return self._launch(server, [program, self._directory / f"{server.name}.toml"])

    def _launch(self, server: ServerAddresses, command: Sequence[str | Path]) -> subprocess.Popen[bytes]:
        with (self._directory / f"{server.name}.log").open("ab") as log:
            return self.servers[server.index].spawn(command, stdout=log, stderr=log)

    def __exit__(self, *error: object) -> None:
        super().__exit__()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait()

    def wait_until_ready(self, timeout: float = READY_TIMEOUT) -> None:
        """Wait until the edge switch is programmed and every server listens."""
        self.edge.wait_until_installed()
        deadline = time.monotonic() + timeout
        for server in self.server_addresses:
            # The servers open the socket of their metrics last.
            listening = ["ss", "-Hltn", "sport", "=", f":{METRICS[1]}"]
            while not self.servers[server.index].run(listening).stdout:
                if time.monotonic() > deadline:
                    raise NodeError(f"{server.name} does not listen within {timeout:g} s; logs are in {self._directory}")
                time.sleep(0.05)

    def rotate_key(self) -> None:
        """Rotate keys as docs/quic.md describes: first in the switch, then in the servers."""
        self.edge.rotate_key()
        self.edge.write_keys(self.key_file)
        self.reload_keys()

    def reload_keys(self, servers: Iterable[ServerAddresses] | None = None) -> None:
        """Have all servers, or these, read the key file again."""
        for server in self.server_addresses if servers is None else servers:
            self._processes[server.index].send_signal(signal.SIGHUP)
