# SPDX-License-Identifier: Apache-2.0
"""The edge switch and the controller: two processes in the testbed's root namespace that can be restarted."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from frontage.config.key_file import replace

from ..metricsclient import scrape
from ..nodes import NodeError, spawn
from ..processes import end
from .addresses import EDGE_CLIENT_PORT, ServerAddresses
from .configuration import configuration, with_scheduler
from .services import Service
from .settings import Settings, Treatment
from .switchcommand import CPU_PORT, GRPC, SwitchCommand
from .topology import edge_interface

METRICS = "127.0.0.1:9464"
COMMAND_TIMEOUT = 90.0
LAST_LINES = 12
"""Lines of a log's end that an error shows."""


@dataclass(frozen=True)
class EdgeCounters:
    """Packet counters of the switch since its start."""

    drops: Mapping[str, int]
    """Dropped packets, by reason."""
    refusals: Mapping[str, int]
    """Packets that AIFO dropped, by the smallest remaining processing time of a band, in microseconds."""
    steering: Mapping[str, int]
    """Packets to and from VIPs, by how the switch found their server."""


class EdgeSwitch:
    """A switch process, and a controller process that programs it over P4Runtime."""

    def __init__(
        self,
        *,
        switch: SwitchCommand,
        controller: Path,
        p4info: Path,
        json_file: Path,
        settings: Settings,
        directory: Path,
        services: Sequence[Service],
        in_service: Sequence[ServerAddresses] | None = None,
    ) -> None:
        self._switch_command = switch
        self._controller_binary = controller
        self._services = services
        self._servers = [ServerAddresses(i) for i in range(settings.servers)]
        self._packets = settings.bottleneck_packets
        self._directory = directory
        self._pipes = settings.pipes
        self.config = directory / "frontage.yaml"
        directory.mkdir()
        self.config.write_text(
            configuration(
                services=services,
                servers=self._servers,
                in_service=self._servers if in_service is None else in_service,
                policy=settings.policies[0],
                seed=settings.seed,
                grpc=GRPC,
                cpu_port=CPU_PORT,
                pipes=settings.pipes,
                chip_pipes=settings.chip_pipes,
                p4info=p4info,
                json_file=json_file,
                control_socket=directory / "control",
                metrics=METRICS,
                resolves_neighbors=settings.profile is None or settings.profile.resolves_neighbors,
            )
        )
        self.more_ports: dict[int, str] = {}
        """Further ports of the switch, by number: their interfaces in the testbed's root namespace."""
        self._switch: subprocess.Popen[bytes] | None = None
        self._controller: subprocess.Popen[bytes] | None = None

    @property
    def switches(self) -> int:
        """Number of switches that the controller programs."""
        return 1

    def start(self) -> None:
        """Start the switch, and the controller, which connects to it."""
        self._switch_command.prepare()
        self.start_switch()
        self.start_controller()

    def start_switch(self) -> None:
        """Start the switch, without a program."""
        ports = {EDGE_CLIENT_PORT: edge_interface(EDGE_CLIENT_PORT)}
        numbers = [server.edge_port(self._pipes) for server in self._servers]
        ports |= {number: edge_interface(number) for number in numbers} | self.more_ports
        with (self._directory / "switch.log").open("ab") as log:
            self._switch = spawn(self._switch_command.command(ports), log)

    def start_controller(self) -> None:
        """Start the controller on the configuration file."""
        with (self._directory / "controller.log").open("ab") as log:
            self._controller = spawn([self._controller_binary, "up", self.config], log)

    def stop_switch(self) -> None:
        """Stop the switch; it loses its state."""
        end(self._switch)

    def stop_controller(self) -> None:
        """Stop the controller; the switch keeps forwarding."""
        end(self._controller)

    def write_configuration(self, text: str) -> None:
        """Replace the configuration file, which the controller follows."""
        replace(self.config, text)

    def apply(self, treatment: Treatment) -> None:
        """Restart the switch with a policy and a scheduler, so that no run inherits another one's counters."""
        # A controller that has just started does not report its connections yet.
        self.wait_until_installed()
        self.write_configuration(with_scheduler(self.config.read_text(), treatment.scheduler, self._packets))
        self.change_policy(treatment.policy)  # the controller reads the whole file
        connections = int(scrape(METRICS).total("frontage_switch_connections_total"))
        self.stop_switch()
        self.start_switch()
        self.wait_until_installed(connections + 1)

    def change_policy(self, policy: str) -> None:
        """Change the VIPs' policy in the running switch."""
        for service in self._services:
            if service.policy is None:
                self.frontage("set-policy", service.name, policy)

    def add_server(self, server: ServerAddresses) -> None:
        """Add a server to all VIPs."""
        for service in self._services:
            options = ["--vip", service.name, "--address", service.address_of(server)]
            options += ["--port", str(service.server_port), "--sid", str(service.sid_of(server))]
            self.frontage("add-server", service.server_name(server), *options)

    def drain(self, server: ServerAddresses) -> None:
        """Stop assigning new connections to a server."""
        for service in self._services:
            self.frontage("drain", service.server_name(server))

    def remove(self, server: ServerAddresses) -> None:
        """Remove a server from all VIPs, which breaks its connections if it still has any."""
        for service in self._services:
            self.frontage("remove-server", service.server_name(server))

    def rotate_key(self) -> None:
        """Have the controller create and install the next cookie key."""
        self.frontage("rotate-key")

    def write_keys(self, file: Path) -> None:
        """Write the key file of the QUIC servers, once the switch has the keys."""
        self._run("keys", str(self.config), "--output", str(file))

    def frontage(self, command: str, *arguments: str) -> str:
        """Run the operator's command with this testbed's configuration, and return its output."""
        return self._run(command, "--config", str(self.config), *arguments)

    def _run(self, command: str, *arguments: str) -> str:
        done = subprocess.run(
            [self._controller_binary, command, *arguments],
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT,
        )
        if done.returncode != 0:
            raise NodeError(f"frontage {command} {' '.join(arguments)} failed: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def wait_until_installed(self, connections: int = 1, timeout: float = COMMAND_TIMEOUT) -> None:
        """Wait until the controller has installed everything in at least its `connections`-th connection to a switch.

        The controller also has the Ethernet addresses of all hosts then.
        """
        deadline = time.monotonic() + timeout
        while not self._installed(connections):
            if time.monotonic() > deadline:
                raise NodeError(f"the controller did not program the switch within {timeout:g} s; see {self._directory}")
            time.sleep(0.1)

    def _installed(self, connections: int) -> bool:
        try:
            metrics = scrape(METRICS)
        except OSError:
            return False
        return (
            metrics.total("frontage_phase", phase="installed") == self.switches
            and not any(metrics.total("frontage_neighbors", state=state) for state in ("incomplete", "failed"))
            and metrics.total("frontage_switch_connections_total") >= connections
        )

    def counters(self) -> EdgeCounters:
        """Return the switch's counters since its start."""
        metrics = scrape(METRICS)
        return EdgeCounters(
            drops=metrics.by("reason", "frontage_dropped_packets_total") | self._switch_command.drops(),
            refusals=metrics.by("min_rpt_us", "frontage_aifo_dropped_packets_total"),
            steering=metrics.by("outcome", "frontage_steering_packets_total"),
        )

    def pids(self) -> Mapping[str, int]:
        """Return the ids of the running processes by name."""
        return {name: p.pid for name, p in self._processes().items() if p.poll() is None}

    def _processes(self) -> dict[str, subprocess.Popen[bytes]]:
        processes = {"switch": self._switch, "controller": self._controller}
        return {name: process for name, process in processes.items() if process is not None}

    def stop(self) -> None:
        """Stop the controller and the switch."""
        self.stop_controller()
        self.stop_switch()
