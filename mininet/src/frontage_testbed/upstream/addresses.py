# SPDX-License-Identifier: Apache-2.0
"""The addresses of the links around the upstream routers.

    c1 .. cN --- transit --- r1, r2 --- (ports 8 and 10) edge1 (port 9) --- rack

The uplinks have the addresses that the uplinks of two switches of a fleet have.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..fleet.addresses import RACK_PORT, EdgeAddresses

TRANSIT = "transit"
TRANSIT_ASN = 65000
ROUTER_ASN = 64513
BMP4, SPEAKER_BMP4 = "169.254.77.1", "169.254.77.2"
"""The link between the controller and its FRR, which are on one host elsewhere."""
BMP_PORT = 11019


@dataclass(frozen=True)
class Upstream:
    """Upstream router `r{index + 1}`."""

    index: int

    @property
    def name(self) -> str:
        """Host name, and the name of the transit's interface."""
        return f"r{self.index + 1}"

    @property
    def uplink(self) -> EdgeAddresses:
        """The addresses of the link to the switch."""
        return EdgeAddresses(self.index)

    @property
    def port(self) -> int:
        """The switch's port."""
        return RACK_PORT - 1 if self.index == 0 else RACK_PORT + self.index

    @property
    def port_name(self) -> str:
        """The name of the port in the controller's configuration."""
        return "internet" if self.index == 0 else f"internet{self.index + 1}"

    @property
    def transit4(self) -> str:
        """The transit's IPv4 address on the link to this router, in a /30."""
        return f"198.19.254.{4 * self.index + 1}"

    @property
    def router4(self) -> str:
        """The router's IPv4 address on that link."""
        return f"198.19.254.{4 * self.index + 2}"

    @property
    def transit6(self) -> str:
        """The transit's IPv6 address on that link, in a /64."""
        return f"2001:db8:cffe:{self.index}::1"

    @property
    def router6(self) -> str:
        """The router's IPv6 address on that link."""
        return f"2001:db8:cffe:{self.index}::2"
