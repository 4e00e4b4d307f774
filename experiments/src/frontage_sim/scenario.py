# SPDX-License-Identifier: Apache-2.0
"""A scenario file: what one figure's runs simulate. `load` turns it into a checked `Scenario`, or names file, line and fix.

Every field has a default, so a scenario says only what is special to it; ``README.md`` lists them all.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from frontage.config import ConfigError
from frontage.config.document import Document, DocumentError, Plain, Problem, parse
from frontage.config.explain import explain
from frontage.config.vips import Policy
from frontage.limits import MAX_WEIGHT
from frontage_sim.quantity import Duration, Rate, Size
from frontage_sim.sizes import sizes


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Overhead = Annotated[
    Size, Field(description="what a frame takes of a link besides its own bytes; Ethernet's are 24", examples=["24B"])
]


class Testbed(_Model):
    """CloudCookie's testbed (section V): clients with an L4 load balancer each on one machine, and servers, behind one switch."""

    kind: Literal["testbed"] = Field("testbed", description="'testbed', 'leaf-spine' or 'graph'")
    clients: int = Field(4, ge=1, le=64, description="clients, each with its own L4 load balancer", examples=[4])
    servers: int = Field(12, ge=1, le=200, description="L7 load balancers", examples=[12])
    rate: Rate = Field(10 * 10**9, description="the rate of the link that all clients share", examples=["10gbit"])
    server_share: float = Field(1, gt=0, description="the rate of a server's link, of `rate` / `servers`", examples=[1.25])
    server_rates: tuple[Rate, ...] = Field((), description="the servers' own rates, in turn, instead", examples=[["1gbit"]])
    overhead: Overhead = 0
    delay: Duration = Field(5_000, description="the propagation delay of a link", examples=["5us"])
    queue: int = Field(250, ge=1, description="packets that wait at a port of a switch", examples=[250])


class LeafSpine(_Model):
    """Racks of hosts, each leaf linked to every spine."""

    kind: Literal["leaf-spine"]
    leaves: int = Field(9, ge=1, le=64, description="leaf switches", examples=[9])
    spines: int = Field(4, ge=1, le=64, description="spine switches", examples=[4])
    hosts: int = Field(16, ge=1, le=128, description="hosts of a leaf", examples=[16])
    access_rate: Rate = Field(10 * 10**9, description="the rate of a host's link", examples=["10gbit"])
    spine_rate: Rate = Field(40 * 10**9, description="the rate of a link between leaf and spine", examples=["40gbit"])
    overhead: Overhead = 0
    delay: Duration = Field(1_000, description="the propagation delay of a link", examples=["1us"])
    queue: int = Field(20, ge=1, description="packets that wait at a port of a switch", examples=[20])
    queue_bytes: Size | None = Field(None, gt=0, description="bytes that wait there, instead of packets", examples=["150kB"])
    nics: bool = Field(
        False, description="whether a host sends by a NIC that is a switch, with `queue` and `scheduler` as any", examples=[True]
    )


class SwitchNode(_Model):
    name: str = Field(description="a name", examples=["tor"])
    balances: bool = Field(False, description="whether it serves the VIP", examples=[True])
    scheduled: bool = Field(True, description="whether `scheduler` holds for its ports", examples=[True])


class HostNode(_Model):
    name: str = Field(description="a name", examples=["c1"])
    role: Literal["client", "server", "peer"] = Field(
        description="'client', 'server', or 'peer' which is both", examples=["client"]
    )


class LinkEdge(_Model):
    ends: tuple[str, str] = Field(description="the two nodes", examples=[["tor", "c1"]])
    rate: Rate = Field(10 * 10**9, description="bits a second, each way", examples=["10gbit"])
    overhead: Overhead = 0
    delay: Duration = Field(5_000, description="propagation delay, each way", examples=["5us"])
    loss_ppb: int = Field(0, ge=0, le=10**9, description="frames lost of a thousand million", examples=[1000])
    queue: int = Field(250, ge=1, description="packets that wait at either end", examples=[250])


class Graph(_Model):
    """The user's own topology."""

    kind: Literal["graph"]
    switches: tuple[SwitchNode, ...] = Field(min_length=1, description="the switches")
    hosts: tuple[HostNode, ...] = Field(min_length=2, description="the hosts")
    links: tuple[LinkEdge, ...] = Field(min_length=1, description="the links")


class Protocol(StrEnum):
    TCP = "tcp"
    QUIC = "quic"


class _Transport(_Model):
    congestion: Literal["newreno", "cubic", "dctcp"] = Field("cubic", description="the congestion controller", examples=["cubic"])
    initial_window: int = Field(10, ge=1, le=1000, description="full segments or datagrams (RFC 6928, RFC 9002)", examples=[10])


class Tcp(_Transport):
    """TCP over IPv4."""

    protocol: Literal[Protocol.TCP] = Field(Protocol.TCP, description="'tcp' or 'quic'", examples=["quic"])
    mss: int = Field(1448, ge=536, le=8948, description="payload bytes of a full segment", examples=[1448])
    initial_threshold: int | None = Field(
        None, ge=2, description="segments at which slow start ends; absent: at the first loss", examples=[30]
    )
    min_rto: Duration = Field(200_000_000, description="the least retransmission time-out", examples=["200ms"])
    initial_rto: Duration = Field(1_000_000_000, description="the time-out of the handshake (RFC 6298)", examples=["1s"])
    delayed_ack: Duration | None = Field(
        None, description="how long an acknowledgment may wait; absent: not at all", examples=["40ms"]
    )
    sack: bool = Field(True, description="selective acknowledgments (RFC 2018)", examples=[True])
    model: Literal["rfc", "netbench"] = Field(
        "rfc", description="whose TCP it is: 'rfc', or 'netbench' with what that simulator does differently", examples=["rfc"]
    )
    receive_window: Size = Field(64 * 2**20, description="bytes that a receiver takes ahead", examples=["64MiB"])


class Quic(_Transport):
    """QUIC over IPv6."""

    protocol: Literal[Protocol.QUIC] = Field(description="'tcp' or 'quic'", examples=["quic"])
    max_datagram: int = Field(1452, ge=1200, le=8952, description="payload bytes of a full datagram", examples=[1452])
    initial_rtt: Duration = Field(
        333_000_000, gt=0, description="the round trip before one is measured (RFC 9002)", examples=["333ms"]
    )
    max_ack_delay: Duration = Field(25_000_000, description="how long an acknowledgment may wait (RFC 9000)", examples=["25ms"])


Weight = Annotated[int, Field(ge=1, le=MAX_WEIGHT)]


class Balancer(_Model):
    policy: Policy = Field(Policy.CCLB4, description="one of " + ", ".join(Policy), examples=["cclb4"])
    alpha: float = Field(0.5, ge=0, le=1, description="the weight of N_AF against N_FF (equation 1)", examples=[0.5])
    look_ahead: Size = Field(65_536, description="a flow with more bytes left than this counts in N_FF", examples=["64KiB"])
    weights: tuple[Weight, ...] = Field((), description="the servers' weights, in turn; else all alike", examples=[[3, 1]])


Macro = Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")]


class Program(_Model):
    """The P4 in every switch: `frontage.p4`, or what the scenario makes of it."""

    overlay: str | None = Field(
        None,
        description="a folder beside the scenario: its files stand in for those of p4src with the same path",
        examples=["p4/mine"],
    )
    define: dict[Macro, int] = Field(default_factory=dict, description="macros for the compiler", examples=[{"RPT_BITS": 4}])


class SchedulerKind(StrEnum):
    FIFO = "fifo"
    AIFO = "aifo"
    SP_PIFO = "sp-pifo"
    PIFO = "pifo"
    SP_PIFO_EXACT = "sp-pifo-exact"
    AIFO_EXACT = "aifo-exact"


DISCIPLINES = {SchedulerKind.PIFO: "pifo", SchedulerKind.SP_PIFO_EXACT: "sp-pifo", SchedulerKind.AIFO_EXACT: "aifo"}
"""The simulator's own queues, by the kinds that are no P4 program's."""


class Scheduler(_Model):
    kind: SchedulerKind = Field(SchedulerKind.FIFO, description="one of " + ", ".join(SchedulerKind), examples=["aifo"])
    rank: Literal["unsent", "segment"] = Field(
        "unsent",
        description="what ranks a packet: 'unsent': what its flow has not sent; 'segment': the bytes from it to its flow's end, TCP only",
        examples=["unsent"],
    )
    window: int = Field(20, ge=1, description="AIFO's W: ranks in the window", examples=[20])
    sample: int = Field(15, ge=1, description="one packet in so many enters the window", examples=[15])
    k: float = Field(0.1, ge=0, lt=1, description="AIFO's headroom, of the queue", examples=[0.1])
    ecn_threshold: int | None = Field(None, ge=1, description="packets from which ECN marks, for DCTCP", examples=[65])


class Flow(_Model):
    """One that is asked for by itself, of a server at its own address."""

    client: str = Field(description="the name of a client", examples=["c1"])
    server: str = Field(description="the name of a server", examples=["s1"])
    size: Size = Field(gt=0, description="bytes of the response", examples=["1MB"])
    start: Duration = Field(0, description="when it is asked for", examples=["1ms"])
    rpt: tuple[tuple[Duration, Duration], ...] = Field(
        (),
        description="times, and the RPT that its packets carry from then on, instead of what the flow still needs",
        examples=[[["0s", "100us"]]],
    )


class Workload(_Model):
    flows: tuple[Flow, ...] = Field((), description="single flows, instead of `sizes` and `load`")
    sizes: str = Field(
        "websearch", description="'websearch', 'datamining', 'fixed:BYTES' or 'uniform:LOW-HIGH'", examples=["websearch"]
    )
    load: float = Field(0.8, gt=0, le=1.5, description="offered bytes of flows as a share of the bottleneck", examples=[0.8])
    duration: Duration = Field(10**9, description="how long flows arrive; then they are let finish", examples=["1s"])
    drain: Duration = Field(10 * 10**9, description="how long flows may take to finish after that", examples=["10s"])
    request: Size = Field(100, description="bytes of a request", examples=["100B"])
    incast: int | None = Field(None, ge=2, description="so many flows begin at a time, of as many servers", examples=[32])

    @field_validator("sizes")
    @classmethod
    def _known(cls, name: str) -> str:
        sizes(name)
        return name


class Scenario(_Model):
    title: str = Field(description="what the figure shows", examples=["FCT against load"])
    seeds: int = Field(10, ge=1, le=10_000, description="runs of each combination, of seeds 1, 2, ...", examples=[10])
    topology: Annotated[Testbed | LeafSpine | Graph, Field(discriminator="kind")] = Field(Testbed(), description="the topology")
    transport: Annotated[Tcp | Quic, Field(discriminator="protocol")] = Field(Tcp(), description="what the hosts speak")
    balancer: Balancer = Field(Balancer(), description="how the VIP's flows find a server")
    scheduler: Scheduler = Field(Scheduler(), description="how ports admit and order packets")
    workload: Workload = Field(Workload(), description="the flows")
    program: Program = Field(Program(), description="the P4 program in the switches")
    record: Duration | None = Field(
        None, description="the interval at which loads, queues and throughput are recorded", examples=["1ms"]
    )
    vary: dict[str, tuple[Any, ...] | dict[str, dict[str, Any]]] = Field(
        default_factory=dict,
        description="fields and their values, or a word and for each of its values what fields have; all combinations run",
    )
    full: dict[str, Any] = Field(default_factory=dict, description="what --full sets: the published scale")

    @field_validator("transport", mode="before")
    @classmethod
    def _tcp_unless_said(cls, given: Any) -> Any:
        return {"protocol": "tcp", **given} if isinstance(given, dict) else given


def read(file: Path) -> Document:
    """The text of a scenario file, in its places. Raises ConfigError."""
    try:
        return parse(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(file, [Problem((), "no such file", "give the path of a scenario file")]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(file, [Problem((), f"cannot be read: {error}", "make it a readable UTF-8 text file")]) from None
    except DocumentError as error:
        raise ConfigError(file, error.problems) from None


def load(file: Path | str) -> Scenario:
    """Read and check a scenario file. Raises ConfigError, which names every problem that was found."""
    file = Path(file)
    document = read(file)
    data: Plain = document.data if document.data is not None else {}
    try:
        return Scenario.model_validate(data)
    except ValidationError as error:
        raise ConfigError(file, explain(error, document, Scenario)) from None
