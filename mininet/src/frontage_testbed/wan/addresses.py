# SPDX-License-Identifier: Apache-2.0
"""Addresses of testbeds with several sites; all are IPv6.

Each location has a number, its index in the latency matrix. Documentation prefixes stand for the Internet.
"""

from __future__ import annotations

from dataclasses import dataclass

PORT = 443
SERVER_PORT = 8443
"""Port of the replica behind the switch; clients reach the plain server on the same host at `PORT`."""
DNS_PORT = 53
TUNNEL_PORT = 4789
"""VXLAN's UDP port (RFC 7348)."""
DISPATCHER_PORT = 8080

SERVICE_PREFIX = "2001:db8:a::/48"
"""Anycast prefix of the service addresses."""
SID_BITS = 16
INSTANCE = f"{SERVICE_PREFIX}+{SID_BITS}"
"""The Artemis parameters that clients know."""
PLAIN_PREFIX = "2001:db8:b::/64"
"""Plain anycast prefix for comparison: the server of each site has its addresses."""
PLAIN_ADDRESS = "2001:db8:b::10"
REGIONAL_PREFIX = "2001:db8:f::/48"
"""The prefixes of regional anycast; the server of each site has their addresses, too."""
AUTHORITY_ADDRESS = "2001:db8:d::53"

WAN_MAC = "02:00:00:00:00:01"
"""MAC address of the network's switch on every link."""


def regional_prefix(region: int) -> str:
    """Return the prefix that only the sites of a region announce."""
    return f"2001:db8:f:{region:x}::/64"


def regional_address(region: int) -> str:
    """Return the service's address in a region."""
    return f"2001:db8:f:{region:x}::10"


@dataclass(frozen=True)
class Attachment:
    """A port of the network's switch, and what is attached to it."""

    port: int
    """Port of the network's switch."""
    location: str
    mac: str
    """MAC address of the attached node."""
    prefixes: tuple[str, ...]
    """Prefixes routed to this port."""


@dataclass(frozen=True)
class Host:
    """A host attached to the network: a client, a resolver, or the authoritative name server."""

    name: str
    location: str
    prefix: str
    """The host's /64, without the length."""
    port: int
    """Port of the network's switch."""

    @property
    def address(self) -> str:
        """The host's address; a client has the first one of its network, the target of probes (docs/mapping.md)."""
        return f"{self.prefix}{'53' if self.name.startswith(('r', 'ns')) else '1'}"

    @property
    def gateway(self) -> str:
        """The network's address on the host's link."""
        return f"{self.prefix}ff"

    @property
    def mac(self) -> str:
        """The host's MAC address."""
        return f"02:00:00:00:01:{self.port:02x}"

    @property
    def attachment(self) -> Attachment:
        """The host's attachment to the network."""
        return Attachment(self.port, self.location, self.mac, (f"{self.prefix}/64",))


@dataclass(frozen=True)
class SiteAddresses:
    """A site: an edge switch with a replica and a dispatcher behind it."""

    id: int
    """1 to 255."""
    location: str
    port: int
    """Port of the network's switch for clients."""
    backbone_port: int
    """Port for tunnels to other sites, which the edge does not accept from outside."""

    @property
    def name(self) -> str:
        """A short name of letters and digits."""
        return f"s{self.id}"

    @property
    def prefix(self) -> str:
        """The site's unicast prefix, except for cookie addresses."""
        return f"2001:db8:{0x100 + self.id:x}::/48"

    @property
    def cookie_prefix(self) -> str:
        """The prefix in which clients address this site's replicas by cookie."""
        return f"2001:db8:c00c:{self.id:x}::/64"

    def address(self, subnet: int, host: int) -> str:
        """Return the address of a host in a /64 of the site's prefix."""
        return f"2001:db8:{0x100 + self.id:x}:{subnet:x}::{host:x}"

    @property
    def vtep(self) -> str:
        """The edge switch's tunnel endpoint."""
        return self.address(0, 1)

    @property
    def attachments(self) -> tuple[Attachment, Attachment]:
        """The site's attachments: for clients, and for other sites."""
        clients = Attachment(self.port, self.location, self.mac, (self.prefix, self.cookie_prefix))
        return clients, Attachment(self.backbone_port, self.location, self.backbone_mac, (f"{self.vtep}/128",))

    @property
    def backbone_mac(self) -> str:
        """The edge switch's MAC address on its link to other sites."""
        return f"02:00:00:00:01:{self.backbone_port:02x}"

    @property
    def wan_gateway(self) -> str:
        """The edge switch's address on its link to the network."""
        return self.address(1, 1)

    @property
    def router(self) -> str:
        """The address of a router on that link."""
        return self.address(1, 0xFE)

    @property
    def speaker(self) -> str:
        """The address of the host with the controller's FRR."""
        return self.address(0x13, 0x13)

    @property
    def speaker_gateway(self) -> str:
        """The edge switch's address on that host's link."""
        return self.address(0x13, 1)

    @property
    def mac(self) -> str:
        """The edge switch's MAC address on its link to the network."""
        return f"02:00:00:00:01:{self.port:02x}"

    @property
    def sids(self) -> tuple[int, int]:
        """First and last SID of this site."""
        return 16 * self.id, 16 * self.id + 15

    @property
    def replica(self) -> str:
        """The replica's own address, for tunnels and for clients of the plain server."""
        return self.address(0x11, 0x11)

    @property
    def replica_gateway(self) -> str:
        """The edge switch's address on the replica's link."""
        return self.address(0x11, 1)

    @property
    def server_prefix(self) -> str:
        """The /64 in which the replica answers at any address."""
        return f"2001:db8:{0x100 + self.id:x}:10::/64"

    @property
    def dip(self) -> str:
        """The replica's DIP in that /64."""
        return self.address(0x10, 0x10)

    @property
    def dispatcher(self) -> str:
        """The dispatcher's address."""
        return self.address(0x12, 0x12)

    @property
    def dispatcher_gateway(self) -> str:
        """The edge switch's address on the dispatcher's link."""
        return self.address(0x12, 1)

    @property
    def management(self) -> tuple[str, str]:
        """Addresses of the controllers and of the dispatcher on the link between them, which carries no client packets."""
        return f"fd00:{self.id:x}::1", f"fd00:{self.id:x}::2"

    def link_macs(self, port: int) -> tuple[str, str]:
        """Return the MAC addresses of the edge switch and of the host on a port towards a host."""
        return f"02:00:00:02:{self.id:02x}:{port:02x}", f"02:00:00:03:{self.id:02x}:{port:02x}"
