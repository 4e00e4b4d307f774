# SPDX-License-Identifier: Apache-2.0
"""Commands that start the edge switch: softswitch or BMv2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from ..metricsclient import scrape
from ..nodes import run_script
from .addresses import EDGE_CLIENT_PORT, PIPE_PORTS
from .settings import Settings
from .topology import edge_interface

GRPC = "127.0.0.1:9559"
METRICS = "127.0.0.1:9465"
"""Softswitch's own metrics."""
CPU_PORT = 510


class SwitchCommand(Protocol):
    """How to start a switch and set up its links."""

    def command(self, interfaces: Mapping[int, str]) -> list[str | Path]:
        """Return the command line for ports by number."""

    def prepare(self) -> None:
        """Set up what the first start needs."""

    def drops(self) -> dict[str, int]:
        """Return the packets that the switch itself dropped, not the P4 program, by reason."""


class Softswitch:
    """softswitch, which has its own link rates, queues and delays."""

    def __init__(
        self, binary: Path, settings: Settings, *, grpc: str = GRPC, metrics: str = METRICS, options: Sequence[str] = ()
    ) -> None:
        """`options` come first on the command line."""
        self._binary = binary
        self._settings = settings
        self._options = options
        self._grpc = grpc
        self._metrics = metrics

    def prepare(self) -> None:
        """Do nothing: links are part of the command line."""

    def command(self, interfaces: Mapping[int, str]) -> list[str | Path]:
        """Downstream, port 1 is the bottleneck; upstream, the ports to the servers have the client link's delay."""
        settings = self._settings
        delay = f"delay={round(settings.delay * 1e6)}us"
        command: list[str | Path] = [self._binary, *self._options, "--no-p4", "--device-id", "1"]
        if settings.chip_pipes > 1:
            command += ["--pipes", str(settings.chip_pipes)]
        for port, interface in interfaces.items():
            for pipe in range(1, settings.pipes_per_packet):
                command += ["--loopback", str(port + PIPE_PORTS * pipe)]
            command += ["-i", f"{port}@{interface}"]
            if port == EDGE_CLIENT_PORT:
                packets = settings.bottleneck_packets
                queue = f"queue-packets={packets}" if packets else f"queue={settings.bottleneck_queue}B"
                command += ["--link", f"{port}:rate={settings.bottleneck_rate}bit,{queue},{delay}"]
            else:
                command += ["--link", f"{port}:{delay}"]
        options = ["--grpc-server-addr", self._grpc, "--cpu-port", str(CPU_PORT), "--metrics-addr", self._metrics]
        return [*command, "--", *options]

    def drops(self) -> dict[str, int]:
        """Return all drops except the P4 program's, which have their own counters."""
        causes = scrape(self._metrics).by("cause", "softswitch_port_drops_total")
        return {cause.replace("_", "-"): n for cause, n in causes.items() if cause not in ("ingress", "egress")}


class Bmv2:
    """BMv2's simple_switch_grpc, without propagation delay.

    Its queues count packets and hide an output buffer, so a kernel token bucket on the port's interface is the bottleneck.
    """

    def __init__(self, binary: Path, settings: Settings) -> None:
        self._binary = binary
        self._settings = settings

    def prepare(self) -> None:
        """Shape the client port's interface."""
        settings = self._settings
        shaper = f"tbf rate {settings.bottleneck_rate}bit burst 15140 limit {settings.bottleneck_queue}"
        run_script("edge", [f"tc qdisc replace dev {edge_interface(EDGE_CLIENT_PORT)} root {shaper}"])

    def command(self, interfaces: Mapping[int, str]) -> list[str | Path]:
        """Return the command line, without links."""
        ports = [word for port, interface in interfaces.items() for word in ("-i", f"{port}@{interface}")]
        options = ["--grpc-server-addr", GRPC, "--cpu-port", str(CPU_PORT)]
        return [self._binary, "--no-p4", "--device-id", "1", "--log-level", "warn", *ports, "--", *options]

    def drops(self) -> dict[str, int]:
        """Return nothing: BMv2 does not report drops."""
        return {}
