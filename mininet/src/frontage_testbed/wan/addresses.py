"""The testbed's addresses; all are IPv6.

Each place has a number, its place in the latency matrix. Documentation prefixes stand for the Internet.
"""

from __future__ import annotations

from dataclasses import dataclass

PORT = 443
SERVER_PORT = 8443
"""Of the replica behind the switch; `PORT` at the same host is the one that clients reach directly."""
DNS_PORT = 53
TUNNEL_PORT = 4789
"""VXLAN's (RFC 7348)."""
DISPATCHER_PORT = 8080

SERVICE_PREFIX = "2001:db8:a::/48"
"""Anycast: service addresses are in it."""
SID_BITS = 16
PLAIN_PREFIX = "2001:db8:b::/64"
"""Anycast, for comparison: each site's server has its addresses itself."""
PLAIN_ADDRESS = "2001:db8:b::10"
AUTHORITY_ADDRESS = "2001:db8:d::53"

WAN_MAC = "02:00:00:00:00:01"
"""The network's end of every link to it."""


@dataclass(frozen=True)
class Attachment:
    """An end of the network's links."""

    port: int
    """Of the network's switch."""
    place: str
    mac: str
    """The neighbour's there."""
    prefixes: tuple[str, ...]
    """Routed to it."""


@dataclass(frozen=True)
class Host:
    """A host that is connected to the network: a client, a resolver, or the name server."""

    name: str
    place: str
    prefix: str
    """A /64 without its length."""
    port: int
    """Of the network's switch."""

    @property
    def address(self) -> str:
        """Its own; a client's is the first of its network, which probes go to (docs/mapping.md)."""
        return f"{self.prefix}{'53' if self.name.startswith(('r', 'ns')) else '1'}"

    @property
    def gateway(self) -> str:
        """The network's."""
        return f"{self.prefix}ff"

    @property
    def mac(self) -> str:
        """Its own."""
        return f"02:00:00:00:01:{self.port:02x}"

    @property
    def attachment(self) -> Attachment:
        """Its link."""
        return Attachment(self.port, self.place, self.mac, (f"{self.prefix}/64",))


@dataclass(frozen=True)
class SiteAddresses:
    """A site: an edge switch with a replica and a dispatcher behind it."""

    id: int
    """1..255."""
    place: str
    port: int
    """Of the network's switch, for clients."""
    backbone_port: int
    """The same for tunnels to other sites: a network's edge does not let them in from outside."""

    @property
    def name(self) -> str:
        """Short, and of letters and digits."""
        return f"s{self.id}"

    @property
    def prefix(self) -> str:
        """Everything that is only here, but for cookie addresses."""
        return f"2001:db8:{0x100 + self.id:x}::/48"

    @property
    def cookie_prefix(self) -> str:
        """Where this site's replicas are found by cookie."""
        return f"2001:db8:c00c:{self.id:x}::/64"

    def _address(self, subnet: int, host: int) -> str:
        return f"2001:db8:{0x100 + self.id:x}:{subnet:x}::{host:x}"

    @property
    def vtep(self) -> str:
        """The edge switch's end of tunnels."""
        return self._address(0, 1)

    @property
    def attachments(self) -> tuple[Attachment, Attachment]:
        """Its links: for clients, and for other sites."""
        clients = Attachment(self.port, self.place, self.mac, (self.prefix, self.cookie_prefix))
        return clients, Attachment(self.backbone_port, self.place, self.backbone_mac, (f"{self.vtep}/128",))

    @property
    def backbone_mac(self) -> str:
        """The edge switch's on its link to other sites."""
        return f"02:00:00:00:01:{self.backbone_port:02x}"

    @property
    def wan_gateway(self) -> str:
        """The edge switch on its link to the network."""
        return self._address(1, 1)

    @property
    def mac(self) -> str:
        """The edge switch's on its link to the network."""
        return f"02:00:00:00:01:{self.port:02x}"

    @property
    def sids(self) -> tuple[int, int]:
        """The server ids that are this site's."""
        return 16 * self.id, 16 * self.id + 15

    @property
    def replica(self) -> str:
        """The replica's own address, where clients of a plain server, and tunnels, reach it."""
        return self._address(0x11, 0x11)

    @property
    def replica_gateway(self) -> str:
        """The edge switch's address on the replica's link."""
        return self._address(0x11, 1)

    @property
    def server_prefix(self) -> str:
        """The /64 any address of which is the replica's."""
        return f"2001:db8:{0x100 + self.id:x}:10::/64"

    @property
    def dip(self) -> str:
        """The replica's in that /64."""
        return self._address(0x10, 0x10)

    @property
    def dispatcher(self) -> str:
        """The dispatcher's own."""
        return self._address(0x12, 0x12)

    @property
    def dispatcher_gateway(self) -> str:
        """The edge switch's address on the dispatcher's link."""
        return self._address(0x12, 1)

    @property
    def management(self) -> tuple[str, str]:
        """The controllers' address and the dispatcher's on the link between them, which no client's packet takes."""
        return f"fd00:{self.id:x}::1", f"fd00:{self.id:x}::2"

    def link_macs(self, port: int) -> tuple[str, str]:
        """The edge switch's MAC address and the host's on a port towards a host."""
        return f"02:00:00:02:{self.id:02x}:{port:02x}", f"02:00:00:03:{self.id:02x}:{port:02x}"
