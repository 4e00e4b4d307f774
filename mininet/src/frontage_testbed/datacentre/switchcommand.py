"""How the edge switch is started: softswitch, or BMv2's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from ..metricsclient import scrape
from ..nodes import run_script
from .addresses import EDGE_CLIENT_PORT
from .settings import Settings
from .topology import edge_interface

GRPC = "127.0.0.1:9559"
METRICS = "127.0.0.1:9465"
"""Softswitch's own."""
CPU_PORT = 510


class SwitchCommand(Protocol):
    """How to start a switch, and what its links are."""

    def command(self, interfaces: Mapping[int, str]) -> list[str | Path]:
        """The command line for ports by number."""

    def prepare(self) -> None:
        """What must be set up once, before the first start."""

    def drops(self) -> dict[str, int]:
        """Packets that the switch dropped of its own, not the P4 program's, accord: by reason."""


class Softswitch:
    """softswitch: the links' rates, queues and delays are its own."""

    def __init__(self, binary: Path, settings: Settings) -> None:
        self._binary = binary
        self._settings = settings

    def prepare(self) -> None:
        """Nothing: links are on the command line."""

    def command(self, interfaces: Mapping[int, str]) -> list[str | Path]:
        """Downstream, port 1 is the bottleneck; upstream, the ports to the servers have the client link's delay."""
        settings = self._settings
        delay = f"delay={round(settings.delay * 1e6)}us"
        command: list[str | Path] = [self._binary, "--no-p4", "--device-id", "1"]
        for port, interface in interfaces.items():
            command += ["-i", f"{port}@{interface}"]
            if port == EDGE_CLIENT_PORT:
                packets = settings.bottleneck_packets
                queue = f"queue-packets={packets}" if packets else f"queue={settings.bottleneck_queue}B"
                command += ["--link", f"{port}:rate={settings.bottleneck_rate}bit,{queue},{delay}"]
            else:
                command += ["--link", f"{port}:{delay}"]
        options = ["--grpc-server-addr", GRPC, "--cpu-port", str(CPU_PORT), "--metrics-addr", METRICS]
        return [*command, "--", *options]

    def drops(self) -> dict[str, int]:
        """All causes but the program's drops, which the program counts by reasons of its own."""
        causes = scrape(METRICS).by("cause", "softswitch_port_drops_total")
        return {cause.replace("_", "-"): n for cause, n in causes.items() if cause not in ("ingress", "egress")}


class Bmv2:
    """BMv2's simple_switch_grpc. Its queues count packets and hide an output buffer, so the bottleneck is a token
    bucket of the kernel's on the port's interface; it has no propagation delay.
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
        """Like softswitch's, without links."""
        ports = [word for port, interface in interfaces.items() for word in ("-i", f"{port}@{interface}")]
        options = ["--grpc-server-addr", GRPC, "--cpu-port", str(CPU_PORT)]
        return [self._binary, "--no-p4", "--device-id", "1", "--log-level", "warn", *ports, "--", *options]

    def drops(self) -> dict[str, int]:
        """BMv2 does not say."""
        return {}
