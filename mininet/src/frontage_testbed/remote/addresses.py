# SPDX-License-Identifier: Apache-2.0
"""The addresses of the network between the edge switch and the hosts of remote servers.

    edge (port of s1) --- fabric --- h1 --- s1
         (port of s2) ---        --- h2 --- s2

Host h1 ends the tunnel of server s1, which has the same addresses as without a tunnel.
"""

from __future__ import annotations

from dataclasses import dataclass

VTEP4 = "10.8.0.1"
VTEP6 = "fd00:8::1"
"""The edge switch's ends of the tunnels."""


@dataclass(frozen=True)
class UnderlayAddresses:
    """The addresses of host `h{index + 1}`, and of the links between it and the edge switch."""

    index: int

    @property
    def name(self) -> str:
        """Host name."""
        return f"h{self.index + 1}"

    @property
    def edge_link(self) -> str:
        """Name of the router's interface to the edge switch."""
        return f"e{self.index + 1}"

    @property
    def edge4(self) -> str:
        """The edge switch's IPv4 address on its link to the router, in a /24."""
        return f"10.9.{self.index + 1}.1"

    @property
    def edge6(self) -> str:
        """The edge switch's IPv6 address on its link to the router, in a /64."""
        return f"fd00:9:0:{self.index + 1:x}::1"

    @property
    def router4(self) -> str:
        """The router's IPv4 address on its link to the edge switch."""
        return f"10.9.{self.index + 1}.2"

    @property
    def router6(self) -> str:
        """The router's IPv6 address on its link to the edge switch."""
        return f"fd00:9:0:{self.index + 1:x}::2"

    @property
    def gateway4(self) -> str:
        """The router's IPv4 address on its link to the host, in a /24."""
        return f"10.10.{self.index + 1}.1"

    @property
    def gateway6(self) -> str:
        """The router's IPv6 address on its link to the host, in a /64."""
        return f"fd00:a:0:{self.index + 1:x}::1"

    @property
    def host4(self) -> str:
        """The host's IPv4 address, where tunnels over IPv4 end."""
        return f"10.10.{self.index + 1}.2"

    @property
    def host6(self) -> str:
        """The host's IPv6 address, where tunnels over IPv6 end."""
        return f"fd00:a:0:{self.index + 1:x}::2"

    @property
    def segments(self) -> str:
        """Prefix whose addresses each do something with packets that they decapsulate."""
        return f"fd00:b:0:{self.index + 1:x}::/64"

    def segment(self, version: int) -> str:
        """Return the address that decapsulates packets of this IP version."""
        return f"fd00:b:0:{self.index + 1:x}::{version}"
