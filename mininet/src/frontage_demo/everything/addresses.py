# SPDX-License-Identifier: Apache-2.0
"""The addresses and names within a site that has several edge switches, balancers and real servers.

The subnets are /64s of the site's prefix (`frontage_testbed.wan.addresses`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frontage_testbed.handoffconfig import RealServer
from frontage_testbed.wan.addresses import SiteAddresses

SWITCHES, BALANCERS, REAL_SERVERS = 2, 2, 3
"""Numbers of each in a site."""
CLIENT_PORT, RACK_PORT, REAL_PORT, BACKBONE_PORT = 1, 2, 3, 4
"""Ports of an edge switch: clients, balancers and the dispatcher, real servers, other sites."""
CLIENT_SIDE, BACKBONE_SIDE = "up", "bb"
"""The two routers of a site: for clients, and for tunnels."""
_UPLINKS, _RACK, _DISPATCHER, _BALANCERS, _REAL = 0x20, 0x11, 0x12, 0x40, 0x50
"""The first subnets of each kind."""


@dataclass(frozen=True)
class Edge:
    """One of a site's edge switches."""

    site: SiteAddresses
    index: int

    @property
    def name(self) -> str:
        """Name of the device in the controller's configuration, of the process, and of the routers' interfaces to it."""
        return f"edge{self.index + 1}"

    @property
    def grpc(self) -> str:
        """Address of the P4Runtime server."""
        return f"127.0.0.1:{9510 + 10 * self.site.id + self.index}"

    def interface(self, port: int) -> str:
        """Return the interface of a port."""
        return f"e{self.site.id}x{self.index + 1}-{port}"

    def mac(self, port: int) -> str:
        """Return the MAC address of a port."""
        return f"02:00:01:{self.site.id:02x}:{self.index:02x}:{port:02x}"

    def uplink(self, side: str) -> tuple[str, str]:
        """Return the addresses of the switch and of the router on the link between them."""
        subnet = _UPLINKS + 2 * self.index + (side == BACKBONE_SIDE)
        return self.site.address(subnet, 1), self.site.address(subnet, 0xFE)

    @property
    def rack(self) -> str:
        """The switch's address on the link to the balancers."""
        return self.site.address(_RACK, 1 + self.index)

    @property
    def dispatchers(self) -> str:
        """The switch's address on the same link, in the dispatcher's subnet."""
        return self.site.address(_DISPATCHER, 1 + self.index)

    @property
    def real(self) -> str:
        """The switch's address on the link to the real servers."""
        return self.site.address(_REAL, 1 + self.index)


@dataclass(frozen=True)
class Balancer:
    """A balancer: a replica of the service, which delegates requests to its site's real servers."""

    site: SiteAddresses
    index: int

    @property
    def name(self) -> str:
        """Name of the host, of its certificate, and in the controller's configuration."""
        return f"s{self.site.id}-lb{self.index + 1}"

    @property
    def sid(self) -> int:
        """The SID that identifies the balancer."""
        return self.site.sids[0] + self.index

    @property
    def address(self) -> str:
        """Its own address, for tunnels and links."""
        return self.site.address(_RACK, 0x11 + self.index)

    @property
    def server_prefix(self) -> str:
        """The /64 in which it answers at any address."""
        return f"{self.site.address(_BALANCERS + self.index, 0).removesuffix('0')}/64"

    @property
    def dip(self) -> str:
        """Its DIP in that /64."""
        return self.site.address(_BALANCERS + self.index, 0x10)


def plain_vip(site: SiteAddresses) -> str:
    """Return the address of the site in DNS, for comparison."""
    return site.address(0x9, 0x9)


def edges(site: SiteAddresses) -> Sequence[Edge]:
    """Return a site's switches."""
    return [Edge(site, index) for index in range(SWITCHES)]


def balancers(site: SiteAddresses) -> Sequence[Balancer]:
    """Return a site's balancers."""
    return [Balancer(site, index) for index in range(BALANCERS)]


def real_servers(site: SiteAddresses) -> Sequence[RealServer]:
    """Return a site's real servers, whose names are those of their hosts."""
    return [RealServer(f"s{site.id}-rs{n + 1}", site.address(_REAL, 0x11 + n)) for n in range(REAL_SERVERS)]


def router_host(site: SiteAddresses, side: str) -> str:
    """Return the name of one of a site's routers."""
    return f"{side}{site.id}"
