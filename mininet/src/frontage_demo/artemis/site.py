# SPDX-License-Identifier: Apache-2.0
"""One site: an edge switch with a controller, and its servers."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from frontage.api.client import RequestError, ask
from frontage.config.key_file import replace
from frontage_testbed.metricsclient import scrape
from frontage_testbed.nodes import Namespace, Network, NodeError, spawn
from frontage_testbed.processes import udp_ports
from frontage_testbed.wan.addresses import PORT, SERVER_PORT, TUNNEL_PORT, SiteAddresses
from frontage_testbed.wan.topology import (
    BACKBONE_PORT,
    DISPATCHER_PORT,
    REPLICA_PORT,
    WAN_PORT,
    dispatcher_host,
    edge_interface,
    replica_host,
)

from . import dispatchers, siteconfig

COMMAND_TIMEOUT = 180.0
PLAIN_LOG = "plain.json"
"""File name of the plain server's access log, in lines of JSON."""


@dataclass(frozen=True)
class Programs:
    """Paths of the programs and files of a site."""

    switch: Path
    compiler: Path
    controller: Path
    server: Path
    client: Path
    dispatcher: Path
    p4info: Path
    json_file: Path


class Site:
    """The processes of a site."""

    ports: Sequence[int] = (WAN_PORT, REPLICA_PORT, DISPATCHER_PORT, BACKBONE_PORT)
    """Ports of the edge switch."""

    def __init__(
        self,
        addresses: SiteAddresses,
        sites: Sequence[SiteAddresses],
        service_address: str,
        programs: Programs,
        directory: Path,
        *,
        dispatched: bool,
        computed: bool,
        tcp: bool = False,
        placement: Mapping[str, object] | None = None,
    ) -> None:
        """`directory` is created here, in the folder of `certificate.pem`, `key.pem` and `objects`.

        With `dispatched`, first flights go to the dispatcher, as if the address did not determine the service. With
        `computed`, the controllers compute the mapping and distribute it themselves. With `tcp`, the service address is also
        a VIP of TCP.
        """
        self.addresses = addresses
        self._sites = sites
        self._service_address = service_address
        self._programs = programs
        self._directory = directory
        self._dispatched = dispatched
        self._computed = computed
        self._tcp = tcp
        self._placement = placement
        self._version = 0
        self.config = directory / "frontage.yaml"
        self._switches: dict[str, subprocess.Popen[bytes]] = {}
        self._controller: subprocess.Popen[bytes] | None = None
        self._servers: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def _grpc(self) -> str:
        return f"127.0.0.1:{9500 + self.addresses.id}"

    @property
    def _metrics(self) -> str:
        return f"127.0.0.1:{9700 + self.addresses.id}"

    @property
    def access_log(self) -> Path:
        """Access log of the replica behind the switch, in lines of JSON."""
        return self._directory / "replica.json"

    def start(self, mapping: Mapping[str, object], redundancy: int) -> None:
        """Start the switch, and the controller, which connects to it."""
        self._directory.mkdir()
        self.write(mapping, redundancy)
        self._start_switches()
        self._controller = self._spawn("controller", [self._programs.controller, "up", self.config])

    def _start_switches(self) -> None:
        """Start the site's switches, without a program."""
        self._start_switch("switch", {port: edge_interface(self.addresses, port) for port in self.ports}, self._grpc)

    def _start_switch(self, name: str, ports: Mapping[int, str], grpc: str, *options: str | Path) -> None:
        """Start a switch with its interfaces by port, its P4Runtime address, and further options."""
        command: list[str | Path] = [self._programs.switch, "--no-p4", "--device-id", "1", "--threads", "1", *options]
        for port, interface in ports.items():
            command += ["-i", f"{port}@{interface}"]
        command += ["--", "--grpc-server-addr", grpc, "--cpu-port", str(siteconfig.CPU_PORT)]
        self._switches[name] = self._spawn(name, command)

    def write(self, mapping: Mapping[str, object], redundancy: int) -> None:
        """Write the controller's configuration and, unless it is computed, the end-user mapping."""
        if not self._computed:
            self.write_mapping(mapping, redundancy)
        replace(self.config, yaml.safe_dump(self._configuration(), sort_keys=False))

    def write_mapping(self, mapping: Mapping[str, object], redundancy: int) -> None:
        """Write the end-user mapping only."""
        replace(self._directory / "mapping.json", json.dumps(siteconfig.mapping(mapping, redundancy)))

    def _configuration(self) -> dict[str, object]:
        return siteconfig.controller(
            self.addresses,
            self._sites,
            service_address=self._service_address,
            dispatched=self._dispatched,
            computed=self._computed,
            tcp=self._tcp,
            placement=self._placement,
            grpc=self._grpc,
            metrics=self._metrics,
            p4info=self._programs.p4info,
            json_file=self._programs.json_file,
            directory=self._directory,
        )

    def _spawn(self, name: str, command: list[str | Path]) -> subprocess.Popen[bytes]:
        with (self._directory / f"{name}.log").open("ab") as log:
            return spawn(command, log)

    def start_servers(self, host: Namespace, dispatcher: Namespace | None = None) -> None:
        """Start the replica behind the switch's VIPs, the plain server that clients reach directly, and the dispatcher if the
        site uses it.
        """
        if dispatcher is not None:
            self._start_dispatcher(dispatcher)
        (self._directory / "keys.toml").write_text(siteconfig.KEYS)
        replica = siteconfig.replica(
            self.addresses, siteconfig.OnlyReplica.of(self.addresses), self.access_log, dispatched=self._dispatched
        )
        for name, text in (("replica", replica), ("plain", siteconfig.plain(fields=f'access_log = "{PLAIN_LOG}"\n'))):
            configuration = self._directory / f"{name}.toml"
            configuration.write_text(text)
            with (self._directory / f"{name}.log").open("ab") as log:
                self._servers[name] = host.spawn([self._programs.server, configuration], stdout=log, stderr=log)

    def _start_dispatcher(self, host: Namespace) -> None:
        """Start the dispatcher on a host, if the site uses it."""
        self._dispatcher_host = host
        if self._dispatched:
            program = self._programs.dispatcher
            self._servers["dispatcher"] = dispatchers.start(host, program, self.addresses, self._directory)

    def start_hosts(self, network: Network) -> None:
        """Start the servers and the dispatcher on the site's hosts."""
        self.start_servers(network[replica_host(self.addresses)], network[dispatcher_host(self.addresses)])

    def is_listening(self, network: Network) -> bool:
        """Return whether the replica and the plain server listen."""
        return {PORT, SERVER_PORT, TUNNEL_PORT} <= udp_ports(network[replica_host(self.addresses)])

    @property
    def plain_requests(self) -> int:
        """The number of requests that the plain server has answered."""
        return len((self._directory / PLAIN_LOG).read_text().splitlines())

    @property
    def ended(self) -> bool:
        """True if a process has ended unexpectedly."""
        return any(process.poll() is not None for process in self._processes)

    @property
    def _processes(self) -> list[subprocess.Popen[bytes]]:
        started = (*self._servers.values(), self._controller, *self._switches.values())
        return [process for process in started if process is not None]

    def wait_until_installed(self) -> None:
        """Wait until the controller has installed everything."""
        deadline = time.monotonic() + COMMAND_TIMEOUT
        while not self._installed():
            if time.monotonic() > deadline or self.ended:
                raise NodeError(f"site {self.addresses.name}: the switch is not programmed; see {self._directory}")
            time.sleep(0.1)

    def _installed(self) -> bool:
        try:
            return scrape(self._metrics).total("frontage_phase", phase="installed") == len(self._switches)
        except OSError:
            return False

    def update_dispatcher(self, mapping: Mapping[str, object], redundancy: int) -> None:
        """Give the dispatcher, if there is one, the table that the switch would otherwise have."""
        if self._dispatched and not self._computed:
            self._version += 1
            dispatchers.update_table(self._dispatcher_host, self.addresses, self._sites, mapping, redundancy, self._version)

    @property
    def has_replicas(self) -> bool:
        """True if the dispatcher, if there is one, has a replica."""
        return not self._dispatched or bool(dispatchers.replicas(self._dispatcher_host, self.addresses))

    @property
    def table_version(self) -> int:
        """Version of the dispatcher's table. Raises OSError if it has none yet."""
        return dispatchers.table_version(self._dispatcher_host, self.addresses)

    def restart_controller(self) -> None:
        """Kill the controller, start it again, and wait until it has installed everything."""
        assert self._controller is not None
        self._controller.kill()
        self._controller.wait()
        self._controller = self._spawn("controller", [self._programs.controller, "up", self.config])
        self.wait_until_installed()

    def outcomes(self) -> dict[str, int]:
        """Return the packets to VIPs by outcome."""
        return scrape(self._metrics).by("outcome", "frontage_steering_packets_total")

    def zone_records(self) -> list[str]:
        """Return the DNS records of the service for clients that do not hash names."""
        command: list[str | Path] = [self._programs.controller, "names", "--zone", "--config", self.config]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=COMMAND_TIMEOUT).stdout.splitlines()

    def apply(self) -> None:
        """Wait until the last written files are installed."""
        try:
            ask(self._directory / "control", "POST", "/installation", timeout=COMMAND_TIMEOUT)
        except RequestError as error:
            raise NodeError(f"site {self.addresses.name}: {error}") from None

    def kill(self) -> None:
        """Kill all processes of the site."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
