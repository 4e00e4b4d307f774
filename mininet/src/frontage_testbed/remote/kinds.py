# SPDX-License-Identifier: Apache-2.0
"""The kinds of tunnels to remote servers: the controller's settings, and the other end on the servers' hosts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..datacentre.addresses import ServerAddresses
from .addresses import VTEP4, VTEP6, UnderlayAddresses

DEVICE = "t0"
VNI = 7
KEY = 0xDEADBEEF
INNER_MAC = "02:00:00:00:00:00"
"""Ethernet address to which the switch sends inner frames."""


@dataclass(frozen=True)
class Tunnel:
    """A kind of tunnel over one IP version."""

    kind: str
    outer: int
    path_mtu: int
    """Bytes of the longest packet that fits into the tunnel over a network with an MTU of 1,500 bytes."""
    in_user_space: bool = False
    """The kernel's device is not in many kernels: `endpoint` takes its place."""

    def settings(self, host: UnderlayAddresses, version: int) -> dict[str, object]:
        """Return `servers[].encapsulation` of a server whose own address has this IP version."""
        encapsulation: dict[str, object] = {"kind": self.kind, "endpoint": self.end(host, version)}
        if self.kind == "gre":
            encapsulation["key"] = KEY
        elif self.kind != "ipip":
            encapsulation["vni"] = VNI
        elif version == 6:
            # The kernel has one source address for IP in IPv6, which is the endpoint of packets of IPv4.
            encapsulation["answers"] = "routed"
        return encapsulation

    def end(self, host: UnderlayAddresses, version: int) -> str:
        """Return the address at which packets of this IP version leave the tunnel."""
        if self.kind == "ipip":
            return host.segment(version)
        return host.host4 if self.outer == 4 else host.host6

    @property
    def vtep(self) -> str:
        """The switch's end."""
        return VTEP4 if self.outer == 4 else VTEP6

    def setup(self, host: UnderlayAddresses, server: ServerAddresses) -> list[str]:
        """Return the commands that create the end on a server's host."""
        if self.kind == "ipip":
            return _segments(host, server)
        local = self.end(host, 4)
        if self.in_user_space:
            create = [f"ip tuntap add dev {DEVICE} mode tun"]
        else:
            parameters = f"id {VNI} local {local} remote {self.vtep} dstport 4789 udp6zerocsumrx"
            # The switch does not resolve addresses in a tunnel.
            create = [f"ip link add {DEVICE} address {INNER_MAC} type {self.kind} {parameters}", f"ip link set {DEVICE} arp off"]
        return [
            *create,
            # Without a link-local address, the kernel sends no multicast into the tunnel.
            f"ip link set {DEVICE} addrgenmode none",
            f"ip link set {DEVICE} mtu {self.path_mtu} up",
            f"ip route add default dev {DEVICE}",
            f"ip -6 route add default dev {DEVICE}",
        ]

    def endpoint_parameters(self, host: UnderlayAddresses) -> list[str | Path]:
        """Return the command line of `endpoint` after the name of the program."""
        tunnel_id = KEY if self.kind == "gre" else VNI
        return [self.kind, DEVICE, self.end(host, 4), self.vtep, str(tunnel_id)]


def _segments(host: UnderlayAddresses, server: ServerAddresses) -> list[str]:
    """Return the commands for IP in IPv6, which Linux has as segment routing with a single segment (RFC 8986)."""
    return [
        f"ip -6 route add {host.segment(4)} encap seg6local action End.DX4 nh4 {server.address4} dev eth0",
        f"ip -6 route add {host.segment(6)} encap seg6local action End.DX6 nh6 {server.address6} dev eth0",
        f"ip sr tunsrc set {host.segment(4)}",
        f"ip -4 route add default encap seg6 mode encap.red segs {VTEP6} via inet6 {host.gateway6} dev fabric",
        f"ip -6 route add default via {host.gateway6}",
    ]


VXLAN = Tunnel("vxlan", 4, 1450)
GRE = Tunnel("gre", 4, 1472, in_user_space=True)
GENEVE = Tunnel("geneve", 6, 1430, in_user_space=True)
IPIP = Tunnel("ipip", 6, 1460)
TUNNELS = (VXLAN, GRE, GENEVE, IPIP)
