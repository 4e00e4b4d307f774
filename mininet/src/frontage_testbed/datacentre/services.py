# SPDX-License-Identifier: Apache-2.0
"""The services of a testbed: the controller's settings for each VIP and its servers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .addresses import COOKIE_PREFIX, HTTP_PORT, QUIC_PORT, QUIC_SERVER_PORT, QUIC_VIP4, QUIC_VIP6, VIP4, VIP6, ServerAddresses


@dataclass(frozen=True)
class Service:
    """A VIP. A server has one address and SID for each, because a SID belongs to one VIP."""

    name: str
    vip: str
    port: int
    """Port at the VIP."""
    address_of: Callable[[ServerAddresses], str]
    """Returns a server's DIP."""
    sid_of: Callable[[ServerAddresses], int]
    server_port: int
    """Port at the DIP."""
    protocol: str = "tcp"
    policy: str | None = None
    """A fixed policy; None for the testbed's policy."""
    cookie_prefix: str | None = None
    """Prefix in which QUIC clients address the servers by cookie."""

    def server_name(self, server: ServerAddresses) -> str:
        """Return the controller's name for a server of this service."""
        return f"{server.name}-{self.name}"


WEB = (
    Service("web", VIP4, HTTP_PORT, lambda s: s.address4, lambda s: s.sid4, HTTP_PORT),
    Service("web6", VIP6, HTTP_PORT, lambda s: s.address6, lambda s: s.sid6, HTTP_PORT),
)
"""HTTP over TCP."""

FILMS = (
    Service(
        "films6",
        QUIC_VIP6,
        QUIC_PORT,
        lambda s: s.quic_address6,
        lambda s: s.sid6,
        QUIC_SERVER_PORT,
        protocol="udp",
        cookie_prefix=COOKIE_PREFIX,
    ),
    Service(
        "films4",
        QUIC_VIP4,
        QUIC_PORT,
        lambda s: s.address4,
        lambda s: s.sid4,
        QUIC_SERVER_PORT,
        protocol="udp",
        policy="cheetah-rr",  # servers report no loads over IPv4
    ),
)
"""HTTP over QUIC."""
