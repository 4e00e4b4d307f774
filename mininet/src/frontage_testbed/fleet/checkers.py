# SPDX-License-Identifier: Apache-2.0
"""The checkers of a fleet: for each edge switch, an interface of the controller's machine behind a port of that switch."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from ..datacentre import checker
from ..datacentre.addresses import VIP4, VIP6
from ..nodes import OFFLOADS_OFF, run_script
from .addresses import EdgeAddresses
from .edges import Edges

_TABLE = 100
"""The first routing table: each source has one of its own."""


def attach(fleet: Edges, check: Mapping[str, object]) -> None:
    """Connect the machine of the controller to the switches, which have not started yet, and check all servers of their VIPs."""
    document = yaml.safe_load(fleet.config.read_text())
    for device, edge in zip(document["devices"], fleet.edges, strict=True):
        fleet.more_ports_of[edge.index] = {checker.PORT: edge.interface(checker.PORT)}
        run_script(edge.checker, _lines(edge))
        gateways = [f"{edge.checker_gateway4}/24", f"{edge.checker_gateway6}/64"]
        addresses = [edge.checker4, edge.checker6]
        port = {"id": checker.PORT, "name": "checker", "role": "client", "mac": edge.checker_gateway_mac, "gateways": gateways}
        device["ports"].append(port)
        device["neighbors"] = [{"address": address, "port": "checker", "mac": edge.checker_mac} for address in addresses]
        device["health"] = {"port": "checker", "addresses": addresses}
    fleet.config.write_text(yaml.safe_dump(document, sort_keys=False))
    checker.change(fleet, check)


def _lines(edge: EdgeAddresses) -> list[str]:
    interface, peer, table = edge.checker, edge.interface(checker.PORT), _TABLE + edge.index
    return [
        "ip link set lo up",
        f"ip link add {interface} address {edge.checker_mac} type veth peer name {peer} address {edge.checker_gateway_mac}",
        *(OFFLOADS_OFF.format(interface=name) for name in (interface, peer)),
        f"echo 1 > /proc/sys/net/ipv6/conf/{peer}/disable_ipv6",
        f"echo 0 > /proc/sys/net/ipv6/conf/{interface}/accept_dad",
        f"ip link set {peer} up",
        f"ip link set {interface} up",
        f"ip addr add {edge.checker4}/24 dev {interface}",
        f"ip addr add {edge.checker6}/64 dev {interface} nodad",
        # The source of a check chooses the switch.
        f"ip rule add from {edge.checker4} lookup {table}",
        f"ip -6 rule add from {edge.checker6} lookup {table}",
        f"ip route add {VIP4}/32 via {edge.checker_gateway4} dev {interface} table {table}",
        f"ip -6 route add {VIP6}/128 via {edge.checker_gateway6} dev {interface} table {table}",
    ]
