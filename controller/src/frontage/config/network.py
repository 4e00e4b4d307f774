# SPDX-License-Identifier: Apache-2.0
"""Sections of the configuration about the network around the switch: ports and their queues, routes, neighbors."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from frontage.fields import AddressField, InterfaceField, MacField, Model, Name, NetworkField
from frontage.limits import AIFO_WINDOW, MAX_DEPTH, MAX_PORT_ID, MAX_RANK_US


class Role(StrEnum):
    """The kind of hosts behind a port."""

    CLIENT = "client"
    SERVER = "server"
    SITE = "site"
    REAL_SERVER = "real-server"


class Discipline(StrEnum):
    """The queueing discipline of a port."""

    FIFO = "fifo"
    AIFO = "aifo"
    SP_PIFO = "sp-pifo"


class Scheduler(Model):
    kind: Discipline = Field(description="one of " + ", ".join(Discipline), examples=["aifo"])
    default_rank: int = Field(
        0,
        ge=0,
        le=MAX_RANK_US,
        description="the rank of packets without a cookie, as a remaining processing time in microseconds",
        examples=[500],
    )
    capacity: int | None = Field(
        None, ge=1, le=MAX_DEPTH, description="the capacity of the port's queue in packets, for aifo", examples=[100]
    )
    window: int = Field(20, ge=1, le=AIFO_WINDOW, description="the size of aifo's window of ranks", examples=[20])
    sample: int = Field(
        15, ge=1, le=65535, description="the sampling interval: one packet in this many enters aifo's window", examples=[15]
    )
    k: float = Field(0.1, ge=0, lt=1, description="the fraction of the queue up to which aifo admits every packet", examples=[0.1])
    report_every: int = Field(
        1,
        ge=1,
        le=1 << 15,
        description="the reporting interval: one departure in this many, a power of two, updates aifo's queue depth",
        examples=[1],
    )

    @property
    def uses_ranks(self) -> bool:
        return self.kind is not Discipline.FIFO


class Port(Model):
    id: int = Field(ge=1, le=MAX_PORT_ID, description="the port number in the data plane", examples=[1])
    name: Name = Field(description="a name of letters, digits, '.', '_', '-'", examples=["uplink"])
    role: Role = Field(
        description="'client' (to the clients), 'server' (to the servers), 'site' (to other sites) or 'real-server' (to real servers)",
        examples=["client"],
    )
    mac: MacField = Field(description="the switch's unicast Ethernet address on this port", examples=["02:00:00:00:01:01"])
    gateways: tuple[InterfaceField, ...] = Field(
        (), description="the switch's own addresses on this port, with prefix lengths", examples=["[192.0.2.1/24]"]
    )
    scheduler: Scheduler | None = Field(None, description="the queueing discipline; a FIFO if absent")
    ecn_threshold: int | None = Field(
        None,
        ge=1,
        lt=MAX_DEPTH,
        description="the queue length in packets from which on ECN-capable packets are marked (DCTCP's K)",
        examples=[65],
    )

    @property
    def uses_ranks(self) -> bool:
        return self.scheduler is not None and self.scheduler.uses_ranks


class Route(Model):
    prefix: NetworkField = Field(description="an IP prefix without host bits", examples=["198.51.100.0/24"])
    port: Name = Field(description="the name of one of `ports`", examples=["uplink"])
    next_hop: AddressField | None = Field(
        None, description="the IP address of the next hop, on a link of the port", examples=["192.0.2.254"]
    )
    mac: MacField | None = Field(
        None,
        description="the next hop's unicast Ethernet address, instead of `next_hop`: then it is not resolved",
        examples=["02:00:00:00:02:01"],
    )

    @model_validator(mode="after")
    def _one_next_hop(self) -> Route:
        if (self.next_hop is None) == (self.mac is None):
            raise ValueError("needs either next_hop or mac")
        return self


class Neighbor(Model):
    address: AddressField = Field(description="the IP address of a host on the switch's own links", examples=["10.0.1.11"])
    port: Name = Field(description="the name of one of `ports`", examples=["rack1"])
    mac: MacField | None = Field(
        None,
        description="the unicast Ethernet address of the host; the controller resolves the address if absent",
        examples=["02:00:00:00:03:01"],
    )
