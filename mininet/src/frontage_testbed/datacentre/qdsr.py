# SPDX-License-Identifier: Apache-2.0
"""A QUIC testbed with real servers (QDSR, docs/handoff.md).

The first server is a load balancer and the only server of the VIP in the switch. The others are its real servers.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from ..certificate import issue_certificate, make_authority
from ..handoffconfig import RealServer, handed_route, handoff, real_server
from ..metricsclient import Scrape, scrape
from ..nodes import NodeError
from . import management
from .addresses import ServerAddresses
from .configuration import with_real_servers
from .edge import METRICS as SWITCH_COUNTERS
from .edge import EdgeSwitch
from .quic import QuicTestbed
from .quicagents import METRICS, network_of
from .services import FILMS
from .settings import Settings
from .testbed import READY_TIMEOUT

BALANCER_METRICS = f"http://{management.SERVER}:{METRICS[1]}/metrics"
"""The metrics of the balancer, for the controller."""

FIELDS = """\
metrics = "{metrics}"
access_log = "{name}.json"

[cookie]
keys = "keys.toml"
bandwidth = "{bandwidth}kbit"
"""
"""Additional fields of a real server's configuration."""


class QdsrTestbed(QuicTestbed):
    """A testbed whose real servers answer HTTP/3 requests to the VIP, inside its context."""

    own_routes = QuicTestbed.routes
    """Routes in the real servers' configuration."""

    metrics_address = "0.0.0.0"

    handoff_fields = ""
    """Additional fields of section [handoff] in the balancer's configuration."""

    def __init__(self, settings: Settings, scratch: Path, edge: EdgeSwitch, server: Path, client: Path, real_server: Path) -> None:
        super().__init__(settings, scratch, edge, server, client)
        self._real_server = real_server
        self.balancer, *self.real_servers = self.server_addresses
        edge.config.write_text(with_real_servers(edge.config.read_text(), self.real_servers, FILMS[0].name, BALANCER_METRICS))
        section = handoff(self.balancer.name, map(_as_real_server, self.real_servers), self.handoff_fields)
        self.routes = f"{section}\n{self._balancer_routes()}"

    def _balancer_routes(self) -> str:
        """Return the routes in the balancer's configuration."""
        return handed_route("least-load")

    def origin(self, real_server: ServerAddresses) -> str:
        """Return the base URL at which a real server answers over HTTP/1.1."""
        return _as_real_server(real_server).origin

    def agent(self, server: ServerAddresses) -> Scrape:
        """Return the metrics of a balancer or real server."""
        with network_of(self.servers[server.index].pid):
            return scrape("{}:{}".format(*METRICS))

    def bodies(self) -> dict[str, int]:
        """Return the bytes of response bodies that each server has sent to clients, by its own metrics; the balancer is first."""
        sent = {self.balancer.name: self.agent(self.balancer).total("frontage_cclb7_quic_body_bytes_total")}
        for server in self.real_servers:
            sent[server.name] = self.agent(server).total("frontage_real_server_body_bytes_total")
        return {name: int(count) for name, count in sent.items()}

    def packets_by_real_server(self) -> dict[str, int]:
        """Return the packets that the switch passed from each real server to clients, by name."""
        packets = scrape(SWITCH_COUNTERS).by("port", "frontage_real_server_packets_total")
        return {real_server.name: packets.get(real_server.name, 0) for real_server in self.real_servers}

    def connected_real_servers(self) -> int:
        """Return the number of real servers to which the balancer may delegate requests."""
        return int(self.agent(self.balancer).total("frontage_cclb7_quic_real_server_up"))

    def _link_datagrams(self) -> dict[str, int]:
        """Return the datagrams that the balancer has received on each link, by real server; 0 without a link."""
        return self.agent(self.balancer).by("server", "frontage_cclb7_quic_real_server_link_datagrams_total")

    def kept_requests(self) -> int:
        """Return the number of requests that the balancer answered itself because it could not delegate them."""
        return int(self.agent(self.balancer).total("frontage_cclb7_quic_handoff_local_total"))

    def open_requests(self) -> dict[str, int]:
        """Return the requests in progress at each real server, by the balancer's count."""
        return self.agent(self.balancer).by("server", "frontage_cclb7_quic_real_server_requests")

    def log(self, skip: int = 0) -> list[dict[str, Any]]:
        """Return the balancer's access log without its first `skip` lines."""
        return [json.loads(line) for line in self._log(self.balancer.name)[skip:]]

    def status(self) -> dict[str, Any]:
        """Return the controller's status of the switch."""
        status: dict[str, Any] = json.loads(self.edge.frontage("status", "--json"))
        return status

    def kill(self, server: ServerAddresses) -> None:
        """Kill a real server or the balancer without warning."""
        process = self._processes[server.index]
        process.kill()
        process.wait()

    def restart_balancer(self) -> None:
        """Restart the killed balancer; it has lost its state."""
        self._processes[self.balancer.index] = self._spawn(self.balancer, self._server)

    def wait_until_ready(self, timeout: float = READY_TIMEOUT) -> None:
        """Wait until the balancer is also connected to its real servers.

        A link that lost packets while the switch restarted may still look connected, so each must have received a packet since.
        """
        super().wait_until_ready(timeout)
        deadline = time.monotonic() + timeout
        before = self._link_datagrams()
        while any(count in (0, before.get(name)) for name, count in self._link_datagrams().items()):
            if time.monotonic() > deadline:
                raise NodeError(f"not all real servers are connected within {timeout:g} s; logs are in {self._directory}")
            time.sleep(0.05)

    def _start_servers(self) -> None:
        self._prepare()
        management.attach(self.servers[self.balancer.index])
        make_authority(self._directory)
        for server in self.server_addresses:
            issue_certificate(self._directory, server.name)
        self._start_balancer(self.balancer)
        for server in self.real_servers:
            fields = FIELDS.format(
                metrics="{}:{}".format(*METRICS),
                name=server.name,
                bandwidth=self.settings.server_rate // 1000,
            )
            named = _as_real_server(server)
            configuration = real_server(named, [self.balancer.name], fields, self.own_routes)
            self._start(server, self._real_server, configuration)


def _as_real_server(server: ServerAddresses) -> RealServer:
    return RealServer(server.name, server.address6)
