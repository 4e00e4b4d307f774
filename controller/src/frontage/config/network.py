"""What the configuration says of the network around the switch: ports and their queues, routes, neighbors."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from frontage.fields import AddressField, InterfaceField, MacField, Model, Name, NetworkField
from frontage.limits import AIFO_WINDOW, MAX_DEPTH, MAX_PORT_ID, MAX_RANK_US


class Role(StrEnum):
    CLIENT = "client"
    SERVER = "server"
    SITE = "site"
    REAL_SERVER = "real-server"


class Discipline(StrEnum):
    """How a port's queue is scheduled."""

    FIFO = "fifo"
    AIFO = "aifo"
    SP_PIFO = "sp-pifo"


class Scheduler(Model):
    kind: Discipline = Field(description="one of " + ", ".join(Discipline), examples=["aifo"])
    default_rank: int = Field(
        0,
        ge=0,
        le=MAX_RANK_US,
        description="the remaining time, in microseconds, taken of packets without a cookie",
        examples=[500],
    )
    capacity: int | None = Field(
        None, ge=1, le=MAX_DEPTH, description="the packets that the port's queue holds, for aifo", examples=[100]
    )
    window: int = Field(20, ge=1, le=AIFO_WINDOW, description="the ranks that aifo's window holds", examples=[20])
    sample: int = Field(15, ge=1, le=65535, description="one packet in so many enters aifo's window", examples=[15])
    k: float = Field(0.1, ge=0, lt=1, description="the share of the queue to which aifo admits any packet", examples=[0.1])
    report_every: int = Field(
        1, ge=1, le=1 << 15, description="one departure in so many, a power of two, tells aifo the queue's depth", examples=[1]
    )

    @property
    def ranks(self) -> bool:
        """Whether ranks matter."""
        return self.kind is not Discipline.FIFO


class Port(Model):
    id: int = Field(ge=1, le=MAX_PORT_ID, description="the data plane's port number", examples=[1])
    name: Name = Field(description="a name of letters, digits, '.', '_', '-'", examples=["uplink"])
    role: Role = Field(
        description="'client' (towards the outside), 'server' (towards the servers), 'site' (towards other sites) or 'real-server'",
        examples=["client"],
    )
    mac: MacField = Field(description="the switch's unicast Ethernet address on this port", examples=["02:00:00:00:01:01"])
    gateways: tuple[InterfaceField, ...] = Field(
        (), description="the addresses with prefix length that the switch answers for", examples=["[192.0.2.1/24]"]
    )
    scheduler: Scheduler | None = Field(None, description="how the port's queue is scheduled; a plain FIFO if absent")
    ecn_threshold: int | None = Field(
        None,
        ge=1,
        lt=MAX_DEPTH,
        description="the packets waiting at the port from which on those of ECN's transports are marked (DCTCP's K)",
        examples=[65],
    )

    @property
    def ranks(self) -> bool:
        """Whether ranks matter to its queue."""
        return self.scheduler is not None and self.scheduler.ranks


class Route(Model):
    prefix: NetworkField = Field(description="an IP prefix without host bits", examples=["198.51.100.0/24"])
    port: Name = Field(description="the name of one of `ports`", examples=["uplink"])
    mac: MacField = Field(description="the next hop's unicast Ethernet address", examples=["02:00:00:00:02:01"])


class Neighbor(Model):
    address: AddressField = Field(description="an IP address that is reached directly", examples=["10.0.1.11"])
    port: Name = Field(description="the name of one of `ports`", examples=["rack1"])
    mac: MacField = Field(description="its unicast Ethernet address", examples=["02:00:00:00:03:01"])
