"""What the configuration says of the services: VIPs, and their servers."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from frontage.config.sites import Artemis
from frontage.fields import AddressField, IPAddress, L4Port, Model, Name, PrefixField
from frontage.limits import MAX_SID, MAX_WEIGHT


class Policy(StrEnum):
    """How a VIP's new connections find their server."""

    HASH = "hash"
    CHEETAH_RR = "cheetah-rr"
    CHEETAH_LL = "cheetah-ll"
    CCLB4 = "cclb4"
    CCLB4_CURRENT = "cclb4-current"
    CCLB4_FUTURE = "cclb4-future"


class Protocol(StrEnum):
    """What a VIP's clients speak: TCP, or QUIC over UDP."""

    TCP = "tcp"
    UDP = "udp"

    @property
    def number(self) -> int:
        """IANA's."""
        return 6 if self is Protocol.TCP else 17


class Vip(Model):
    name: Name = Field(description="a name of letters, digits, '.', '_', '-'", examples=["shop"])
    address: AddressField = Field(description="the address that clients connect to", examples=["203.0.113.10"])
    protocol: Protocol = Field(Protocol.TCP, description="'tcp', or 'udp' for QUIC", examples=["udp"])
    port: L4Port = Field(description="the TCP or UDP port that clients connect to", examples=[80])
    policy: Policy = Field(Policy.CCLB4, description="one of " + ", ".join(Policy), examples=["cclb4"])
    alpha: float = Field(
        0.5, ge=0, le=1, description="the weight of N_AF against N_FF in cclb4's score, 0 to 1 (equation 1)", examples=[0.5]
    )
    look_ahead: int | None = Field(
        None, ge=0, description="the servers' look-ahead threshold in bytes, for information only", examples=[65536]
    )
    cookie_prefix: PrefixField | None = Field(
        None,
        description="an IPv6 /64 that is routed to the switch, for the cookie addresses of QUIC servers",
        examples=["2001:db8:c00c:1e::/64"],
    )

    artemis: Artemis | None = Field(None, description="makes the address a service address of Artemis; none if absent")

    @property
    def effective_alpha(self) -> float:
        """``cclb4-current`` and ``cclb4-future`` are cclb4 with the extreme weights."""
        return {Policy.CCLB4_CURRENT: 1.0, Policy.CCLB4_FUTURE: 0.0}.get(self.policy, self.alpha)


class ServerState(StrEnum):
    ACTIVE = "active"
    DRAINING = "draining"


class Server(Model):
    name: Name = Field(description="a name of letters, digits, '.', '_', '-'", examples=["web1"])
    vip: Name = Field(description="the name of one of `vips`", examples=["shop"])
    address: AddressField = Field(description="the server's own address (DIP)", examples=["10.0.1.11"])
    port: L4Port = Field(description="the server's own TCP or UDP port", examples=[8080])
    sid: int = Field(ge=0, le=MAX_SID, description="a server id, unique in the file", examples=[11])
    weight: int = Field(1, ge=1, le=MAX_WEIGHT, description="the share of new connections against the VIP's others", examples=[1])
    tunnel: AddressField | None = Field(
        None,
        description="where a replica of an Artemis service ends its tunnels; `address` if absent",
        examples=["2001:db8:1:11::11"],
    )
    state: ServerState = Field(
        ServerState.ACTIVE, description="'active', or 'draining': keeps its connections, gets no new ones", examples=["active"]
    )

    @property
    def tunnel_end(self) -> IPAddress:
        """Its own end of tunnels."""
        return self.tunnel or self.address

    @property
    def active(self) -> bool:
        return self.state is ServerState.ACTIVE
