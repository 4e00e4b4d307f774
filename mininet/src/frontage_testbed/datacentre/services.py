"""The services that a testbed offers: what the controller is told of each VIP and of the servers behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .addresses import COOKIE_PREFIX, HTTP_PORT, QUIC_PORT, QUIC_SERVER_PORT, QUIC_VIP4, QUIC_VIP6, VIP4, VIP6, ServerAddresses


@dataclass(frozen=True)
class Service:
    """A VIP; a server has an address and a SID for each, for a SID belongs to one VIP."""

    name: str
    vip: str
    port: int
    """At the VIP."""
    address_of: Callable[[ServerAddresses], str]
    """A server's DIP."""
    sid_of: Callable[[ServerAddresses], int]
    server_port: int
    """At the DIP."""
    protocol: str = "tcp"
    policy: str | None = None
    """The policy that it keeps; if None, it has the testbed's."""
    cookie_prefix: str | None = None
    """Where QUIC clients find the servers by cookie."""

    def server_name(self, server: ServerAddresses) -> str:
        """The controller's name for a server of this service."""
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
        policy="cheetah-rr",  # over IPv4 no loads are reported
    ),
)
"""HTTP over QUIC."""
