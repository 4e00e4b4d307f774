# SPDX-License-Identifier: Apache-2.0
"""Bodies of requests and responses for live displays."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field, IPvAnyAddress

from frontage.api.access import Role
from frontage.api.models import Name, Request
from frontage.config.vips import ServerState
from frontage.service.probe import Flags


class Caller(BaseModel):
    """The sender of a request."""

    name: str
    origin: str
    role: Role


class Count(BaseModel):
    """Packets and bytes since the switches started."""

    packets: int
    bytes: int


class SampledSwitch(BaseModel):
    """A switch, at the time of a sample."""

    name: str
    address: str
    phase: str
    role: str
    error: str | None
    state: str
    zone: str | None
    spilling: list[str] = Field(description="the VIPs for which it uses servers of other zones")
    entries: int | None = Field(description="the entries that the configuration requires")
    packets: int | None = Field(description="packets to VIPs; null if the switch cannot be read")
    dropped: int | None = Field(description="dropped packets; null if the switch cannot be read")


class SampledVip(BaseModel):
    """The totals of a VIP, at the time of a sample."""

    name: str
    address: str
    protocol: str
    port: int
    policy: str
    alpha: float
    active: int
    draining: int
    failed: int = Field(description="the servers that fail their health checks")
    up: Count
    down: Count
    new_flows: int = Field(description="connections assigned since the switches started")
    n_af: int = Field(description="active flows, as last reported by the servers")
    n_ff: int = Field(description="flows that will still be active soon, as last reported by the servers")


class KeyAge(BaseModel):
    """A cookie key."""

    id: int
    epoch: int
    seals: bool
    since: str | None = Field(description="the time of the change that added it; null if the journal does not have it")


class Overview(BaseModel):
    """A sample of the fleet."""

    time: float = Field(description="Unix time of the sample")
    seconds: float = Field(description="the time that it took to read the sample")
    has_reports: bool = Field(description="whether the switches store the reports of servers")
    switches: list[SampledSwitch]
    vips: list[SampledVip]
    drops: dict[str, Count] = Field(description="by name of the reason, without zeros")
    outcomes: dict[str, Count] = Field(description="by how the server was found, without zeros")
    keys: list[KeyAge]
    config_error: str | None


class Streams(BaseModel):
    """The streams that a load balancer delegates to a real server, since the agent of the load balancer started."""

    completed: int
    aborted: int = Field(description="streams that were reset")
    resumed: int = Field(description="streams that the load balancer completed after the real server was lost")
    in_progress: int
    body_bytes: int = Field(description="bytes of the bodies of responses")
    rejected: dict[str, int] = Field(description="streams that the load balancer served itself instead, by reason")


class Sender(BaseModel):
    """A real server that sends on behalf of a server."""

    name: str
    port: str
    packets: int = Field(description="packets on behalf of the server from all real servers on the port")
    bytes: int
    streams: Streams | None = Field(description="null if no agent counts them")


class Agent(BaseModel):
    """The last reading of the metrics of a server's agent."""

    time: float | None = Field(description="Unix time of the streams; null before the first reading")
    age: float | None = Field(description="seconds since then")
    error: str | None = Field(description="why the last attempt to read failed")
    unmatched: list[str] = Field(description="real servers of the agent that the configuration does not have; the first 16")


class SampledServer(BaseModel):
    """A server, at the time of a sample."""

    name: str
    address: str
    port: int
    sid: int
    weight: int
    share: int
    zone: str | None
    state: ServerState
    health: str | None
    up: Count
    down: Count
    new_flows: int = Field(description="connections assigned to it since the switches started")
    n_af: int | None = Field(description="active flows, as last reported by the server")
    n_ff: int | None = Field(description="flows that will still be active soon, as last reported by the server")
    rpt_us: int | None = Field(description="the remaining processing time in its last packet, in microseconds")
    score: float | None = Field(description="its score in the switch, in flows; null while it gets no new flows by score")
    agent: Agent | None = Field(description="null without `metrics`, or if no real server sends for the server")
    real_servers: list[Sender]


class SampledServers(BaseModel):
    """A sample of the servers of one VIP."""

    time: float
    seconds: float
    has_reports: bool
    servers: list[SampledServer]


class ExplanationRequest(Request):
    """A text to explain."""

    text: str = Field(
        min_length=1,
        max_length=100,
        description="an address, client:port, a cookie address, a connection id in hexadecimal, or a TSval or TSecr",
    )
    vip: Name | None = None
    client: IPvAnyAddress | None = None
    client_port: int | None = Field(None, ge=1, le=65535)


class Finding(BaseModel):
    """A step of an explanation."""

    what: str
    result: str
    holds: bool = Field(description="false if this step does not decide")


class Explanation(BaseModel):
    """The server of a packet, with the reason."""

    kind: str
    vip: str | None
    server: str | None
    findings: list[Finding]


class Segment(Request):
    """A segment of a client that the switch receives."""

    vip: Name
    client: IPvAnyAddress
    client_port: int = Field(ge=1, le=65535)
    flags: Flags = Flags.SYN
    tsval: int | None = Field(1, ge=0, lt=1 << 32, description="the timestamp option; none if null")
    tsecr: int = Field(0, ge=0, lt=1 << 32)


class CaptureRequest(Request):
    """The packet to follow: an injected one, or the first packet with these addresses and ports."""

    device: Name | None = Field(None, description="the switch; the first one if absent")
    seconds: float = Field(5, gt=0, le=30, description="how long to wait for the packet")
    source: IPvAnyAddress | None = None
    destination: IPvAnyAddress | None = None
    source_port: int | None = Field(None, ge=1, le=65535)
    destination_port: int | None = Field(None, ge=1, le=65535)
    inject: Segment | None = None


class Capture(BaseModel):
    """The trace of one packet through a switch."""

    device: str
    passes: list[dict[str, Any]] = Field(description="as in docs/tracing.md; empty if no packet arrived in time")


class Location(BaseModel):
    """Where a site is."""

    latitude: float = Field(description="degrees north of the equator")
    longitude: float = Field(description="degrees east of Greenwich")


class Site(BaseModel):
    """A site."""

    id: int
    name: str
    endpoint: str
    sids: list[int]
    tunnel: str
    dispatchers: list[str]
    location: Location | None
    out: bool = Field(description="whether the mapping leaves the site out because its dispatchers do not answer")


class RegionsBySite(BaseModel):
    """The number of regions for which a site is the best. The clients in no region count as one."""

    site: int
    regions: int


class SiteService(BaseModel):
    """A service at several sites."""

    vip: str
    name: str
    id: int
    deployment: int | None
    regions_by_site: list[RegionsBySite]


class Prefix(BaseModel):
    """The region of a client prefix."""

    prefix: str
    region: int


class Choice(BaseModel):
    """The sites of a deployment for a region, the best first."""

    deployment: int
    region: int
    sites: list[int]


class PlacedSite(BaseModel):
    """The stage of a placed service at a site (docs/demand.md)."""

    site: int
    stage: str = Field(description="starting, active, leaving or draining")
    since: float | None = Field(description="Unix time; null for a service that has never moved")


class LastMove(BaseModel):
    """The epochs of a service's last move."""

    shown: int = Field(description="the first epoch whose demand required it")
    decided: int
    active: int | None = Field(description="null until first flights go to all of the new sites")


class PlacedService(BaseModel):
    """A service that is placed by demand."""

    name: str
    handshakes_per_second: float | None
    sites: list[PlacedSite]
    last_move: LastMove | None
    adds: list[int] = Field(description="the sites that its demand requires, and that it does not have yet")
    removes: list[int]
    begun: bool = Field(description="whether the change has begun")
    error: str | None = Field(description="the reason why the last epoch has placed nothing")


class Sites(BaseModel):
    """The sites, the end-user mapping, and the placement of services."""

    own: int | None
    computed: bool = Field(description="whether the controller computes the mapping")
    sites: list[Site]
    services: list[SiteService]
    prefixes: list[Prefix] = Field(description="the first 500")
    prefix_count: int
    choices: list[Choice] = Field(description="the first 500")
    choice_count: int
    placement: list[PlacedService]
