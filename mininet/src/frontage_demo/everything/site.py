# SPDX-License-Identifier: Apache-2.0
"""One site: its switches with their controller, the dispatcher, balancers and real servers."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frontage_demo.artemis import siteconfig as artemis
from frontage_demo.artemis.site import COMMAND_TIMEOUT, Programs, Site
from frontage_testbed.certificate import issue_certificate, make_authority
from frontage_testbed.datacentre.quicagents import network_of
from frontage_testbed.metricsclient import Scrape, scrape
from frontage_testbed.nodes import Network, NodeError
from frontage_testbed.processes import udp_ports
from frontage_testbed.wan.addresses import DISPATCHER_PORT, SERVER_PORT, TUNNEL_PORT

from . import siteconfig
from .addresses import BACKBONE_PORT, CLIENT_PORT, RACK_PORT, REAL_PORT, Edge, balancers, edges, real_servers
from .parts import ALL, Parts
from .topology import route_by_source, route_through


@dataclass(frozen=True)
class AllPrograms(Programs):
    """Paths of the programs and files of a site, and of its clients."""

    real_server: Path
    page_client: Path
    preload: Path
    """The library with which unmodified programs hash names (`docs/naming.md`)."""


class FleetSite(Site):
    """The processes of a site with several switches."""

    parts: Parts = ALL
    """The systems that the site uses; set before the start."""
    _programs: AllPrograms
    _network: Network

    def _start_switches(self) -> None:
        for edge in edges(self.addresses):
            self.start_edge(edge)

    def start_edge(self, edge: Edge) -> None:
        """Start one switch, without a program."""
        ports = {port: edge.interface(port) for port in (CLIENT_PORT, RACK_PORT, REAL_PORT, BACKBONE_PORT)}
        self._start_switch(edge.name, ports, edge.grpc, *self._switch_options(edge))

    def _switch_options(self, edge: Edge) -> list[str | Path]:
        """Return the options of one switch."""
        link = f"{CLIENT_PORT}:rate={siteconfig.EDGE_RATE}bit,queue-packets={siteconfig.EDGE_QUEUE}"
        return ["--link", link, "--time-of-day"]

    def wait_until_programmed(self, edge: Edge) -> None:
        """Wait until the controller has installed everything in a switch that has restarted. Raises NodeError."""
        deadline = time.monotonic() + COMMAND_TIMEOUT
        while self.switch_metrics().total("frontage_phase", phase="installed", device=edge.name) != 1:
            if time.monotonic() > deadline:
                raise NodeError(f"site {self.addresses.name}: {edge.name} is not programmed; see {self._directory}")
            time.sleep(0.1)

    def use(self, living: Sequence[Edge]) -> None:
        """Let routers and servers use these switches only, as routing protocols would."""
        route_through(self._network, self.addresses, living)

    def _configuration(self) -> dict[str, object]:
        others = [site for site in self._sites if site != self.addresses]
        return siteconfig.controller(self.addresses, others, super()._configuration(), self.parts)

    def start_hosts(self, network: Network) -> None:
        """Start the dispatcher, the real servers and the balancers."""
        self._network = network
        self._start_dispatcher(network[f"d{self.addresses.id}"])
        (self._directory / "keys.toml").write_text(artemis.KEYS)
        make_authority(self._directory)
        if self.parts.routes_by_source:
            route_by_source(network, self.addresses)
        for real in real_servers(self.addresses):
            self._start(real.name, self._programs.real_server, siteconfig.of_real_server(self.addresses, real))
        for balancer in balancers(self.addresses):
            log = self._directory / f"{balancer.name}.json"
            self._start(balancer.name, self._programs.server, siteconfig.balancer(balancer, log, self.parts))

    def _start(self, name: str, program: Path, text: str) -> None:
        issue_certificate(self._directory, name)
        (self._directory / f"{name}.toml").write_text(text)
        self._spawn_server(name, program)

    def _spawn_server(self, name: str, program: Path) -> None:
        file = self._directory / f"{name}.toml"
        with (self._directory / f"{name}.log").open("ab") as log:
            self._servers[name] = self._network[name].spawn([program, file], stdout=log, stderr=log)

    def is_listening(self, network: Network) -> bool:
        """Return whether all balancers listen, and are connected to all real servers if they delegate."""
        hosts = balancers(self.addresses)
        ports = {SERVER_PORT, TUNNEL_PORT} if self.parts.steering else {SERVER_PORT}
        if not all(ports <= udp_ports(network[host.name]) for host in hosts):
            return False
        if not self.parts.handoff:
            return True
        up = "frontage_cclb7_quic_real_server_up"
        return all(self.metrics(host.name).total(up) == len(real_servers(self.addresses)) for host in hosts)

    def metrics(self, host: str) -> Scrape:
        """Return the metrics of a balancer or a real server by its name."""
        with network_of(self._network[host].pid):
            return scrape(siteconfig.METRICS)

    def zone_records(self) -> list[str]:
        """Return the DNS records of the service; without steering, only names of regions are in DNS."""
        return super().zone_records() if self.parts.steering else []

    def switch_metrics(self) -> Scrape:
        """Return the controller's metrics, with all counters of the switches."""
        return scrape(self._metrics)

    def dispatcher_metrics(self) -> Scrape:
        """Return the dispatcher's metrics."""
        with network_of(self._dispatcher_host.pid):
            return scrape(f"[{self.addresses.dispatcher}]:{DISPATCHER_PORT}")

    def requests(self) -> list[dict[str, Any]]:
        """Return the lines of the balancers' access logs, with the field `balancer`."""
        lines = []
        for balancer in balancers(self.addresses):
            log = self._directory / f"{balancer.name}.json"
            # The last line may not be complete yet.
            text = log.read_text().split("\n")[:-1] if log.exists() else []
            lines += [{"balancer": balancer.name, **json.loads(line)} for line in text]
        return lines

    def kill_one(self, name: str) -> None:
        """Kill a switch or a server by its name."""
        process = (self._switches | self._servers)[name]
        process.kill()
        process.wait()

    def restart_real_server(self, name: str) -> None:
        """Start a killed real server again."""
        self._spawn_server(name, self._programs.real_server)

    def restart_balancer(self, name: str) -> None:
        """Start a killed balancer again."""
        self._spawn_server(name, self._programs.server)

    def restart_dispatcher(self) -> None:
        """Kill the dispatcher, and start it again."""
        self.kill_one("dispatcher")
        self._start_dispatcher(self._dispatcher_host)


class CapturedSite(FleetSite):
    """A site whose switches capture all packets."""

    def captured(self, edge: Edge, port: int) -> Path:
        """Return the capture of what a port of a switch received."""
        return self._directory / edge.name / f"{edge.interface(port)}_in.pcap"

    def _switch_options(self, edge: Edge) -> list[str | Path]:
        folder = self._directory / edge.name
        folder.mkdir(exist_ok=True)
        return [*super()._switch_options(edge), "--pcap", folder]
