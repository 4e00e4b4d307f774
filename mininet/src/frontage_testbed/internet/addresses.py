# SPDX-License-Identifier: Apache-2.0
"""The addresses of links and hosts of the emulated Internet, and the ports of the wires between routers.

Sites have the addresses of `frontage_testbed.wan`. A wire is a pair of ports of the softswitch `wires`, which has the delays.
"""

from __future__ import annotations

from .plan import ADJACENCIES, UPLINKS, System, Uplink

FIRST_PORT = 2
"""The first port of the first wire: the wires' program pairs ports 2 and 3, 4 and 5, and so on."""
WAN_PORT, REPLICA_PORT, SPEAKER_PORT = 1, 2, 3
"""Ports of an edge switch. Those to other sites follow."""
ROUTER_MAC = "02:00:00:00:0a:{site:02x}"


def link_ports(index: int) -> tuple[int, int]:
    """Return the ports of the wire of a link between systems, in the order of its ends."""
    return FIRST_PORT + 2 * index, FIRST_PORT + 2 * index + 1


def uplink_ports(uplink: Uplink) -> tuple[int, int]:
    """Return the ports of the wire between the upstream router and a site's switch."""
    return link_ports(len(ADJACENCIES) + uplink.site - 1)


def backbone_ports(one: int, other: int) -> tuple[int, int]:
    """Return the ports of the wire between two sites, for this order of them."""
    pairs = [(a.site, b.site) for a in UPLINKS for b in UPLINKS if a.site < b.site]
    index = pairs.index((min(one, other), max(one, other)))
    ports = link_ports(len(ADJACENCIES) + len(UPLINKS) + index)
    return ports if one < other else ports[::-1]


def backbone_port(other: int) -> int:
    """Return the port of a site's edge switch to another site."""
    return SPEAKER_PORT + other


def link_address(index: int, *, first: bool) -> str:
    """Return the address of one end of a link between systems, in a /64."""
    return f"2001:db8:fe:{index + 1:x}::{1 if first else 2}"


def backbone_address(own: int, other: int) -> str:
    """Return the address of a site's edge switch on its link to another site, in a /64."""
    return f"2001:db8:bb:{min(own, other):x}{max(own, other):02x}::{own:x}"


def client_prefix(system: System) -> str:
    """Return the /48 of an access network."""
    return f"2001:db8:c{system.client:x}::/48"


def client_host(system: System, host: int) -> str:
    """Return the name of one of the hosts of an access network."""
    return f"c{system.client}{host}"


def client_address(system: System, host: int) -> str:
    """Return the address of one of the hosts, each of which has a /64 of its own."""
    return f"2001:db8:c{system.client:x}:{host:x}::1"


def client_gateway(system: System, host: int) -> str:
    """Return the router's address on the link to one of the hosts."""
    return f"2001:db8:c{system.client:x}:{host:x}::ff"
