# SPDX-License-Identifier: Apache-2.0
"""The edge switches of a fleet, and the one controller that programs them."""

from __future__ import annotations

import copy
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from ..datacentre.addresses import CLIENTS4, CLIENTS6, EDGE_CLIENT_PORT, ServerAddresses
from ..datacentre.edge import METRICS, EdgeSwitch
from ..datacentre.settings import Settings
from ..datacentre.switchcommand import Softswitch
from ..metricsclient import scrape
from ..nodes import spawn
from ..processes import end
from .addresses import RACK4, RACK6, RACK_PORT, EdgeAddresses


class Edges(EdgeSwitch):
    """Several softswitch processes, and a controller process that programs them over P4Runtime."""

    def __init__(self, edges: Sequence[EdgeAddresses], softswitch: Path, settings: Settings, **options: Any) -> None:
        """`options` are those of `EdgeSwitch`."""
        super().__init__(switch=Softswitch(softswitch, settings), settings=settings, **options)
        self.edges = list(edges)
        self._commands = {
            e.index: Softswitch(softswitch, settings, grpc=e.grpc, metrics=e.metrics, options=("--time-of-day",)) for e in edges
        }
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self.more_ports_of: dict[int, dict[int, str]] = {}
        """Further ports of each switch, by its index: interfaces by number of the port."""
        self.config.write_text(_with_devices(self.config.read_text(), edges, self._servers))

    @property
    def switches(self) -> int:
        """Number of switches that the controller programs."""
        return len(self.edges)

    def start_switch(self) -> None:
        """Start all switches, without a program."""
        for edge in self.edges:
            self.start_one(edge)

    def start_one(self, edge: EdgeAddresses) -> None:
        """Start one switch, without a program."""
        ports = {port: edge.interface(port) for port in (EDGE_CLIENT_PORT, RACK_PORT)}
        ports |= self.more_ports_of.get(edge.index, {})
        with (self._directory / f"{edge.name}.log").open("ab") as log:
            self._running[edge.index] = spawn(self._commands[edge.index].command(ports), log)

    def kill_one(self, edge: EdgeAddresses) -> None:
        """Kill one switch; it loses its state, and its links stay up."""
        process = self._running.pop(edge.index)
        process.kill()
        process.wait()

    def set_program(self, edge: EdgeAddresses, p4info: Path, json_file: Path) -> None:
        """Give one switch another program, and wait until it is installed."""
        document = yaml.safe_load(self.config.read_text())
        device = next(device for device in document["devices"] if device["name"] == edge.name)
        device["pipeline"] = {"p4info": str(p4info), "json": str(json_file)}
        connections = int(scrape(METRICS).total("frontage_switch_connections_total"))
        self.write_configuration(yaml.safe_dump(document, sort_keys=False))
        self.wait_until_installed(connections + 1)

    def stop_switch(self) -> None:
        """Stop all switches."""
        for process in self._running.values():
            end(process)

    def _processes(self) -> dict[str, subprocess.Popen[bytes]]:
        running = {f"edge{index + 1}": process for index, process in self._running.items()}
        return running | {name: process for name, process in super()._processes().items() if name != "switch"}


def _with_devices(text: str, edges: Sequence[EdgeAddresses], servers: Sequence[ServerAddresses]) -> str:
    """Return a configuration for one switch as that of a fleet."""
    document = yaml.safe_load(text)
    device = document.pop("device")
    for section in ("ports", "routes"):
        document.pop(section)
    # Copies, because YAML would write a shared value once and refer to it.
    document["devices"] = [copy.deepcopy(device) | {"name": e.name, "address": e.grpc} | _network(e, servers) for e in edges]
    changed: str = yaml.safe_dump(document, sort_keys=False)
    return changed


def _network(edge: EdgeAddresses, servers: Sequence[ServerAddresses]) -> dict[str, object]:
    """Return the sections about the network of one switch."""
    uplink = {"id": EDGE_CLIENT_PORT, "name": "internet", "role": "client", "mac": edge.uplink_mac}
    rack = {"id": RACK_PORT, "name": "rack", "role": "server", "mac": edge.rack_mac}
    return {
        "ports": [
            uplink | {"gateways": [f"{edge.uplink4}/30", f"{edge.uplink6}/64"]},
            rack | {"gateways": [f"{edge.rack4}/{RACK4}", f"{edge.rack6}/{RACK6}"]},
        ],
        "routes": [
            {"prefix": CLIENTS4, "port": "internet", "next_hop": edge.router4},
            {"prefix": CLIENTS6, "port": "internet", "next_hop": edge.router6},
            *({"prefix": s.quic_prefix, "port": "rack", "next_hop": s.address6} for s in servers),
        ],
    }
