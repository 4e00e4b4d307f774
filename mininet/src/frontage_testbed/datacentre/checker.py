# SPDX-License-Identifier: Apache-2.0
"""The checker of health checks: an interface of the controller's machine behind a port of the edge switch."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from ..nodes import OFFLOADS_OFF, run_script
from .addresses import QUIC_VIP4, QUIC_VIP6, VIP4, VIP6
from .edge import EdgeSwitch

PORT = 100
PORT_MAC = "02:00:00:00:04:01"
PORT_INTERFACE = "edge-checker"
INTERFACE = "checker"
MAC = "02:00:00:00:04:02"
ADDRESS4, GATEWAY4 = "10.255.0.2", "10.255.0.1"
ADDRESS6, GATEWAY6 = "fd00:0:ff::2", "fd00:0:ff::1"


def attach(edge: EdgeSwitch, check: Mapping[str, object]) -> None:
    """Connect the machine of the controller to the edge switch, which has not started yet, and check all servers of its VIPs."""
    edge.more_ports[PORT] = PORT_INTERFACE
    run_script(
        INTERFACE,
        [
            "ip link set lo up",
            f"ip link add {INTERFACE} address {MAC} type veth peer name {PORT_INTERFACE} address {PORT_MAC}",
            *(OFFLOADS_OFF.format(interface=interface) for interface in (INTERFACE, PORT_INTERFACE)),
            f"echo 1 > /proc/sys/net/ipv6/conf/{PORT_INTERFACE}/disable_ipv6",
            f"echo 0 > /proc/sys/net/ipv6/conf/{INTERFACE}/accept_dad",
            f"ip link set {PORT_INTERFACE} up",
            f"ip link set {INTERFACE} up",
            f"ip addr add {ADDRESS4}/24 dev {INTERFACE}",
            f"ip addr add {ADDRESS6}/64 dev {INTERFACE} nodad",
            *_routes(),
        ],
    )
    document = yaml.safe_load(edge.config.read_text())
    gateways = [f"{GATEWAY4}/24", f"{GATEWAY6}/64"]
    document["ports"].append({"id": PORT, "name": INTERFACE, "role": "client", "mac": PORT_MAC, "gateways": gateways})
    document["neighbors"] = [{"address": address, "port": INTERFACE, "mac": MAC} for address in (ADDRESS4, ADDRESS6)]
    document["health"] = {"port": INTERFACE, "addresses": [ADDRESS4, ADDRESS6]}
    edge.config.write_text(yaml.safe_dump(document, sort_keys=False))
    change(edge, check)


def change(edge: EdgeSwitch, check: Mapping[str, object]) -> None:
    """Change the checks of all VIPs in the configuration file, which a running controller follows."""
    document = yaml.safe_load(edge.config.read_text())
    for vip in document["vips"]:
        vip["health"] = dict(check)
    edge.write_configuration(yaml.safe_dump(document, sort_keys=False))


def cut(*, up: bool) -> None:
    """Cut the checker's own link, or mend it."""
    # The kernel forgets the IPv6 address and routes of an interface that goes down, but not those of one whose peer does.
    run_script(INTERFACE, [f"ip link set {PORT_INTERFACE} {'up' if up else 'down'}"])


def _routes() -> list[str]:
    four = [f"ip route add {vip}/32 via {GATEWAY4}" for vip in (VIP4, QUIC_VIP4)]
    return [*four, *(f"ip -6 route add {vip}/128 via {GATEWAY6}" for vip in (VIP6, QUIC_VIP6))]
