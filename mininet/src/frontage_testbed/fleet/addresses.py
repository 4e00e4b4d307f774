# SPDX-License-Identifier: Apache-2.0
"""The addresses and names of the edge switches of a fleet. Clients and servers have those of the data centre's testbed."""

from __future__ import annotations

from dataclasses import dataclass

from ..datacentre.addresses import EDGE_CLIENT_PORT

RACK_PORT = EDGE_CLIENT_PORT + 1
RACK4 = 16
RACK6 = 48
"""Prefix lengths of the rack, one link with all servers and all edge switches."""


@dataclass(frozen=True)
class EdgeAddresses:
    """Edge switch `edge{index + 1}`, with one port to the upstream router and one to the rack."""

    index: int

    @property
    def name(self) -> str:
        """Name of the node and of the device in the controller's configuration."""
        return f"edge{self.index + 1}"

    @property
    def grpc(self) -> str:
        """Address of the P4Runtime server."""
        return f"127.0.0.1:{9559 + self.index}"

    @property
    def metrics(self) -> str:
        """Address of softswitch's own metrics."""
        return f"127.0.0.1:{9470 + self.index}"

    def interface(self, port: int) -> str:
        """Return the name of the interface of a port."""
        return f"{self.name}-{port}"

    @property
    def uplink_mac(self) -> str:
        """MAC address of the port to the router."""
        return f"02:00:00:00:05:{self.index + 1:02x}"

    @property
    def rack_mac(self) -> str:
        """MAC address of the port to the rack."""
        return f"02:00:00:00:06:{self.index + 1:02x}"

    @property
    def router_mac(self) -> str:
        """MAC address of the router on the link to this switch."""
        return f"02:00:00:00:07:{self.index + 1:02x}"

    @property
    def uplink4(self) -> str:
        """IPv4 address on the link to the router, in a /30."""
        return f"198.18.255.{4 * self.index + 1}"

    @property
    def router4(self) -> str:
        """The router's IPv4 address on that link."""
        return f"198.18.255.{4 * self.index + 2}"

    @property
    def uplink6(self) -> str:
        """IPv6 address on the link to the router, in a /64."""
        return f"2001:db8:cfff:{self.index}::1"

    @property
    def router6(self) -> str:
        """The router's IPv6 address on that link."""
        return f"2001:db8:cfff:{self.index}::2"

    @property
    def rack4(self) -> str:
        """IPv4 address in the rack."""
        return f"10.0.255.{self.index + 1}"

    @property
    def rack6(self) -> str:
        """IPv6 address in the rack."""
        return f"fd00:0:0:ffff::{self.index + 1:x}"

    @property
    def checker(self) -> str:
        """Name of the checker's interface behind this switch."""
        return f"checker{self.index + 1}"

    @property
    def checker_mac(self) -> str:
        """MAC address of that interface."""
        return f"02:00:00:00:08:{self.index + 1:02x}"

    @property
    def checker_gateway_mac(self) -> str:
        """MAC address of the port to the checker."""
        return f"02:00:00:00:09:{self.index + 1:02x}"

    @property
    def checker4(self) -> str:
        """The checker's IPv4 address behind this switch, in a /24."""
        return f"10.255.{self.index}.2"

    @property
    def checker_gateway4(self) -> str:
        """IPv4 address on the link to the checker."""
        return f"10.255.{self.index}.1"

    @property
    def checker6(self) -> str:
        """The checker's IPv6 address behind this switch, in a /64."""
        return f"fd00:0:ff:{self.index}::2"

    @property
    def checker_gateway6(self) -> str:
        """IPv6 address on the link to the checker."""
        return f"fd00:0:ff:{self.index}::1"
