# SPDX-License-Identifier: Apache-2.0
"""The addresses of the data centre's testbed, and the ports of its edge switch.

    c1 .. cN --- internet --- (port 1) edge (port 1 + i) --- s1 .. sM

Documentation prefixes stand for the public Internet (RFC 5737, RFC 3849, and RFC 2544's for the client networks),
private ones for the data centre.
"""

from __future__ import annotations

from dataclasses import dataclass

VIP4 = "203.0.113.10"
VIP6 = "2001:db8:f::10"
HTTP_PORT = 80
QUIC_VIP4 = "203.0.113.20"
QUIC_VIP6 = "2001:db8:f::20"
QUIC_PORT = 443
QUIC_SERVER_PORT = 8443
COOKIE_PREFIX = "2001:db8:c00c:1e::/64"
"""Prefix in which QUIC clients address servers by cookie; routed to the edge switch."""
CLIENTS4 = "198.18.0.0/15"
CLIENTS6 = "2001:db8:c000::/36"

EDGE_CLIENT_PORT = 8
"""Ports 0 to 7 of Tofino 2 have other purposes; 6 recirculates."""
PIPE_PORTS = 128
"""Port numbers of a pipe of Tofino. Clients are behind the first pipe."""
EDGE_CLIENT_MAC = "02:00:00:00:01:01"
EDGE_CLIENT4 = "198.18.255.1"
EDGE_CLIENT6 = "2001:db8:cfff::1"
INTERNET_MAC = "02:00:00:00:01:02"
INTERNET4 = "198.18.255.2"
INTERNET6 = "2001:db8:cfff::2"


@dataclass(frozen=True)
class ClientAddresses:
    """Client `c{index + 1}` and the router in front of it."""

    index: int

    @property
    def name(self) -> str:
        """Host name."""
        return f"c{self.index + 1}"

    @property
    def address4(self) -> str:
        """The client's IPv4 address, in a /24."""
        return f"198.18.{self.index + 1}.2"

    @property
    def gateway4(self) -> str:
        """The router's IPv4 address on the client's link."""
        return f"198.18.{self.index + 1}.1"

    @property
    def address6(self) -> str:
        """The client's IPv6 address, in a /64."""
        return f"2001:db8:c000:{self.index + 1:x}::2"

    @property
    def gateway6(self) -> str:
        """The router's IPv6 address on the client's link."""
        return f"2001:db8:c000:{self.index + 1:x}::1"


@dataclass(frozen=True)
class ServerAddresses:
    """Server `s{index + 1}` and the edge switch's port to it."""

    index: int

    @property
    def name(self) -> str:
        """Host name, and value of its X-Server header."""
        return f"s{self.index + 1}"

    def edge_port(self, pipes: int) -> int:
        """Return the port of the edge switch towards the server; the servers take turns at the pipes."""
        return EDGE_CLIENT_PORT + 1 + self.index + PIPE_PORTS * (self.index % pipes)

    @property
    def sid4(self) -> int:
        """SID for the IPv4 service."""
        return self.index + 1

    @property
    def sid6(self) -> int:
        """SID for the IPv6 service."""
        return 2049 + self.index

    @property
    def mac(self) -> str:
        """The server's MAC address."""
        return f"02:00:00:00:02:{self.index + 1:02x}"

    @property
    def gateway_mac(self) -> str:
        """MAC address of the edge switch's port."""
        return f"02:00:00:00:03:{self.index + 1:02x}"

    @property
    def address4(self) -> str:
        """DIP for the IPv4 service, in a /24."""
        return f"10.0.{self.index + 1}.2"

    @property
    def gateway4(self) -> str:
        """The edge switch's IPv4 address on the server's link."""
        return f"10.0.{self.index + 1}.1"

    @property
    def address6(self) -> str:
        """DIP for the IPv6 service, in a /64."""
        return f"fd00:0:0:{self.index + 1:x}::2"

    @property
    def gateway6(self) -> str:
        """The edge switch's IPv6 address on the server's link."""
        return f"fd00:0:0:{self.index + 1:x}::1"

    @property
    def quic_prefix(self) -> str:
        """The /64 in which the server answers at any address."""
        return f"fd00:0:1:{self.index + 1:x}::/64"

    @property
    def quic_address6(self) -> str:
        """DIP for the IPv6 service over QUIC, in that /64."""
        return f"fd00:0:1:{self.index + 1:x}::10"
