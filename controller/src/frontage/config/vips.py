# SPDX-License-Identifier: Apache-2.0
"""Sections of the configuration about services: VIPs and their servers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, ClassVar

from pydantic import Field

from frontage.config.agent_metrics import AgentMetrics
from frontage.config.discovery import Source
from frontage.config.health import HealthCheck
from frontage.config.limits import Limits
from frontage.config.remote_servers import Encapsulation, EncapsulationKind
from frontage.config.sites import Artemis
from frontage.config.syn_defence import SynDefence
from frontage.fields import AddressField, IPAddress, L4Port, Model, Name, PrefixField
from frontage.limits import MAX_SERVERS, MAX_SID, MAX_WEIGHT


class Policy(StrEnum):
    """How a VIP's new connections are assigned to servers."""

    HASH = "hash"
    CHEETAH_RR = "cheetah-rr"
    CHEETAH_LL = "cheetah-ll"
    CCLB4 = "cclb4"
    CCLB4_CURRENT = "cclb4-current"
    CCLB4_FUTURE = "cclb4-future"

    @property
    def weighs_loads(self) -> bool:
        """True if the policy compares the loads of servers by their weights."""
        return self.startswith("cclb4")


class Protocol(StrEnum):
    """The transport protocol of a VIP: TCP, or UDP for QUIC."""

    TCP = "tcp"
    UDP = "udp"

    @property
    def number(self) -> int:
        """The IANA protocol number."""
        return 6 if self is Protocol.TCP else 17


class Vip(Model):
    name: Name = Field(description="a name of letters, digits, '.', '_', '-'", examples=["shop"])
    address: AddressField = Field(
        description="the address that clients connect to; the service address of the name if absent", examples=["203.0.113.10"]
    )
    protocol: Protocol = Field(Protocol.TCP, description="'tcp', or 'udp' for QUIC", examples=["udp"])
    port: L4Port = Field(description="the TCP or UDP port that clients connect to", examples=[80])
    policy: Policy = Field(Policy.CCLB4, description="one of " + ", ".join(Policy), examples=["cclb4"])
    alpha: float = Field(
        0.5,
        ge=0,
        le=1,
        description="the weight of N_AF in cclb4's score, 0 to 1; N_FF has the rest (CloudCookie, equation 1)",
        examples=[0.5],
    )
    look_ahead: int | None = Field(
        None, ge=0, description="the look-ahead threshold of the servers in bytes, for information only", examples=[65536]
    )
    cookie_prefix: PrefixField | None = Field(
        None,
        description="an IPv6 /64 routed to the switch, for the cookie addresses of QUIC servers",
        examples=["2001:db8:c00c:1e::/64"],
    )
    artemis: Artemis | None = Field(None, description="the Artemis service whose service address this is; none if absent")
    health: HealthCheck | None = Field(None, description="the health check of the VIP's servers; none if absent")
    syn_defence: SynDefence | None = Field(None, description="the defence against SYN floods; none if absent")
    limits: Limits | None = Field(None, description="the limits on what clients send to the VIP; none if absent")
    slow_start: float = Field(
        0,
        ge=0,
        le=3600,
        description="the seconds in which the share of a recovered or added server grows to its weight; 0 for at once",
        examples=[10],
    )
    spill_over: float | None = Field(
        None,
        gt=0,
        le=1,
        description="the healthy part of a zone's weight below which its switches also use servers of other zones; "
        "if absent, they always use all",
        examples=[0.7],
    )
    max_servers: int | None = Field(
        None,
        ge=1,
        le=MAX_SERVERS,
        description="the number of servers up to which the VIP's table for connections without a cookie is not resized; "
        "if absent, 64, or fewer if the tables of many VIPs do not fit",
        examples=[256],
    )
    discovery: Source | None = Field(
        None, discriminator="kind", description="where more servers of this VIP come from; only those of `servers` if absent"
    )

    @property
    def has_replicas(self) -> bool:
        """True for a service address of QUIC: datagrams that entered at another site reach the servers in tunnels."""
        return self.artemis is not None and self.protocol is Protocol.UDP

    @property
    def effective_alpha(self) -> float:
        """The weight in use: ``cclb4-current`` and ``cclb4-future`` are cclb4 with the extreme weights."""
        return {Policy.CCLB4_CURRENT: 1.0, Policy.CCLB4_FUTURE: 0.0}.get(self.policy, self.alpha)


class ServerState(StrEnum):
    """The state of a server with regard to new connections."""

    ACTIVE = "active"
    DRAINING = "draining"


class Server(Model):
    RENAMED: ClassVar[Mapping[str, str]] = {"tunnel": "tunnel_address"}

    name: Name = Field(description="a name of letters, digits, '.', '_', '-'", examples=["web1"])
    vip: Name = Field(description="the name of one of `vips`", examples=["shop"])
    address: AddressField = Field(description="the server's own address (DIP)", examples=["10.0.1.11"])
    port: L4Port = Field(description="the server's own TCP or UDP port", examples=[8080])
    sid: int = Field(ge=0, le=MAX_SID, description="the server id, unique in the file", examples=[11])
    weight: int = Field(1, ge=1, le=MAX_WEIGHT, description="the weight of the server among the servers of its VIP", examples=[1])
    zone: Name | None = Field(None, description="the name of the zone of the server; every zone if absent", examples=["hall1"])
    tunnel_address: AddressField | None = Field(
        None,
        description="the tunnel endpoint of a replica of an Artemis service; `address` if absent",
        examples=["2001:db8:1:11::11"],
    )
    encapsulation: Encapsulation | None = Field(
        None,
        description="the tunnel to a remote server: one of "
        + ", ".join(EncapsulationKind)
        + ", or a mapping with `kind`; none if absent",
        examples=["vxlan"],
    )
    metrics: AgentMetrics | None = Field(
        None,
        description="the URL of the Prometheus metrics of the server's agent, which counts the streams that it delegates, "
        "or a mapping with `url`; not read if absent",
        examples=["http://10.0.1.1:9153/metrics"],
    )
    state: ServerState = Field(
        ServerState.ACTIVE,
        description="'active', or 'draining': the server keeps its connections but gets no new ones",
        examples=["active"],
    )

    @property
    def identity(self) -> tuple[object, ...]:
        """The fields on which cookies of the server depend: if one changes, it is another server."""
        return self.vip, self.sid, self.address, self.port

    @property
    def tunnel_endpoint(self) -> IPAddress:
        return self.tunnel_address or self.address

    @property
    def remote(self) -> Encapsulation | None:
        """The tunnel to this server, or None if the switch reaches the server without one."""
        tunnel = self.encapsulation
        return None if tunnel is None or tunnel.kind is EncapsulationKind.NONE else tunnel

    @property
    def destination(self) -> IPAddress:
        """The address to which the switch sends the server's packets: the server's own, or the endpoint of its tunnel."""
        return self.address if self.remote is None else self.remote.endpoint or self.address

    @property
    def active(self) -> bool:
        return self.state is ServerState.ACTIVE

    def draining(self) -> Server:
        """Return a copy that keeps its connections and gets no new ones."""
        return self.model_copy(update={"state": ServerState.DRAINING})

    @property
    def share(self) -> int:
        """The part of its weight that counts now, in percent: less than 100 in slow start, or for a part of another zone's clients."""
        return 100

    @property
    def is_failed(self) -> bool:
        """True if the server gets no new connections because it has failed its health checks."""
        return False

    def with_share(self, percent: int) -> Server:
        """Return a copy of which only ``percent`` percent of the weight count."""
        return JudgedServer.model_construct(**self._fields, percent=percent, has_failed=self.is_failed)

    def failed(self) -> Server:
        """Return a copy that has failed: it keeps its connections and gets no new ones."""
        fields = {**self._fields, "state": ServerState.DRAINING}
        return JudgedServer.model_construct(**fields, percent=self.share, has_failed=True)

    @property
    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in Server.model_fields}


class JudgedServer(Server):
    """A server with what the controller has found out about it. No file has one."""

    percent: int
    has_failed: bool

    @property
    def share(self) -> int:
        return self.percent

    @property
    def is_failed(self) -> bool:
        return self.has_failed


START_SHARES = (25, 50, 75)
"""The shares of a server in slow start in percent, each for a third of the time. Each step moves connections without a cookie."""


def by_vip(servers: Iterable[Server]) -> dict[str, list[Server]]:
    """Return servers by VIP name, in their order. VIPs without servers are absent."""
    result: dict[str, list[Server]] = {}
    for server in servers:
        result.setdefault(server.vip, []).append(server)
    return result
