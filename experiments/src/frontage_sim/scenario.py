# SPDX-License-Identifier: Apache-2.0
"""Scenario files: the simulations behind a figure. `load` returns a checked `Scenario`, or an error with file, line and fix.

Almost every field has a default, so a scenario contains only what differs from it.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator

from frontage.config import ConfigError
from frontage.config.document import Document, DocumentError, Plain, Problem, parse
from frontage.config.explain import explain
from frontage.config.vips import Policy
from frontage.fields import Model
from frontage.limits import MAX_WEIGHT
from frontage_sim.flow_sizes import flow_sizes
from frontage_sim.quantity import Duration, Rate, Size

Overhead = Annotated[
    Size, Field(description="bytes that each frame takes on a link besides its own; 24 on Ethernet", examples=["24B"])
]


class Testbed(Model):
    """CloudCookie's testbed (section V): one machine with clients, each with its own L4 load balancer, and servers at one switch."""

    kind: Literal["testbed"] = Field("testbed", description="'testbed', 'leaf-spine' or 'graph'")
    clients: int = Field(4, ge=1, le=64, description="the number of clients, each with its own L4 load balancer", examples=[4])
    servers: int = Field(12, ge=1, le=200, description="the number of L7 load balancers", examples=[12])
    rate: Rate = Field(10 * 10**9, description="the rate of the link that all clients share", examples=["10gbit"])
    server_share: float = Field(
        1, gt=0, description="the rate of a server's link as a multiple of `rate` / `servers`", examples=[1.25]
    )
    server_rates: tuple[Rate, ...] = Field(
        (), description="rates of the servers' links, used in turn, instead of `server_share`", examples=[["1gbit"]]
    )
    overhead: Overhead = 0
    delay: Duration = Field(5_000, description="the propagation delay of a link", examples=["5us"])
    queue: int = Field(250, ge=1, description="the queue limit of a switch port in packets", examples=[250])


class LeafSpine(Model):
    """Racks of hosts with a leaf switch each, which has a link to every spine."""

    kind: Literal["leaf-spine"]
    leaves: int = Field(9, ge=1, le=64, description="the number of leaf switches", examples=[9])
    spines: int = Field(4, ge=1, le=64, description="the number of spine switches", examples=[4])
    hosts: int = Field(16, ge=1, le=128, description="the number of hosts per leaf", examples=[16])
    access_rate: Rate = Field(10 * 10**9, description="the rate of a host's link", examples=["10gbit"])
    spine_rate: Rate = Field(40 * 10**9, description="the rate of a link between leaf and spine", examples=["40gbit"])
    overhead: Overhead = 0
    delay: Duration = Field(1_000, description="the propagation delay of a link", examples=["1us"])
    queue: int = Field(20, ge=1, description="the queue limit of a switch port in packets", examples=[20])
    queue_bytes: Size | None = Field(
        None, gt=0, description="the queue limit of a switch port in bytes, instead of packets", examples=["150kB"]
    )
    nics: bool = Field(
        False,
        description="true if each host has a NIC that is a switch, with `queue` and `scheduler` like the others",
        examples=[True],
    )


class SwitchNode(Model):
    name: str = Field(description="the name of the switch", examples=["tor"])
    balances: bool = Field(False, description="true if the switch serves the VIP", examples=[True])
    scheduled: bool = Field(True, description="true if `scheduler` applies to its ports", examples=[True])


class HostNode(Model):
    name: str = Field(description="the name of the host", examples=["c1"])
    role: Literal["client", "server", "peer"] = Field(description="'client', 'server', or 'peer' for both", examples=["client"])


class LinkEdge(Model):
    ends: tuple[str, str] = Field(description="the two nodes", examples=[["tor", "c1"]])
    rate: Rate = Field(10 * 10**9, description="the rate of each direction", examples=["10gbit"])
    overhead: Overhead = 0
    delay: Duration = Field(5_000, description="the propagation delay of each direction", examples=["5us"])
    loss_ppb: int = Field(0, ge=0, le=10**9, description="the loss rate in frames per 10^9", examples=[1000])
    queue: int = Field(250, ge=1, description="the queue limit at each end in packets", examples=[250])


class Graph(Model):
    """A topology that the scenario lists."""

    kind: Literal["graph"]
    switches: tuple[SwitchNode, ...] = Field(min_length=1, description="the switches")
    hosts: tuple[HostNode, ...] = Field(min_length=2, description="the hosts")
    links: tuple[LinkEdge, ...] = Field(min_length=1, description="the links")


class Protocol(StrEnum):
    TCP = "tcp"
    QUIC = "quic"


class _Transport(Model):
    congestion: Literal["newreno", "cubic", "dctcp"] = Field(
        "cubic", description="the congestion control algorithm", examples=["cubic"]
    )
    initial_window: int = Field(
        10, ge=1, le=1000, description="the initial window in full segments or datagrams (RFC 6928, RFC 9002)", examples=[10]
    )


class Tcp(_Transport):
    """TCP over IPv4."""

    protocol: Literal[Protocol.TCP] = Field(Protocol.TCP, description="'tcp' or 'quic'", examples=["quic"])
    mss: int = Field(1448, ge=536, le=8948, description="the payload of a full segment in bytes", examples=[1448])
    initial_threshold: int | None = Field(
        None,
        ge=2,
        description="the initial slow-start threshold in segments; without it, slow start ends at the first loss",
        examples=[30],
    )
    min_rto: Duration = Field(200_000_000, description="the minimum retransmission timeout", examples=["200ms"])
    initial_rto: Duration = Field(
        1_000_000_000, description="the retransmission timeout of the handshake (RFC 6298)", examples=["1s"]
    )
    delayed_ack: Duration | None = Field(
        None, description="the maximum delay of an acknowledgment; without it, acknowledgments are immediate", examples=["40ms"]
    )
    sack: bool = Field(True, description="selective acknowledgments (RFC 2018)", examples=[True])
    model: Literal["rfc", "netbench"] = Field(
        "rfc", description="'rfc', or 'netbench' for the deviations of that simulator's TCP", examples=["rfc"]
    )
    receive_window: Size = Field(64 * 2**20, description="the receive window", examples=["64MiB"])


class Quic(_Transport):
    """QUIC over IPv6."""

    protocol: Literal[Protocol.QUIC] = Field(description="'tcp' or 'quic'", examples=["quic"])
    max_datagram: int = Field(1452, ge=1200, le=8952, description="the payload of a full datagram in bytes", examples=[1452])
    initial_rtt: Duration = Field(
        333_000_000, gt=0, description="the RTT estimate before the first sample (RFC 9002)", examples=["333ms"]
    )
    max_ack_delay: Duration = Field(25_000_000, description="the maximum delay of an acknowledgment (RFC 9000)", examples=["25ms"])


Weight = Annotated[int, Field(ge=1, le=MAX_WEIGHT)]


class Balancer(Model):
    policy: Policy = Field(Policy.CCLB4, description="one of " + ", ".join(Policy), examples=["cclb4"])
    alpha: float = Field(0.5, ge=0, le=1, description="the weight of N_AF; N_FF has the rest (equation 1)", examples=[0.5])
    look_ahead: Size = Field(
        65_536, description="the number of remaining bytes above which a flow counts in N_FF", examples=["64KiB"]
    )
    weights: tuple[Weight, ...] = Field(
        (), description="the servers' weights, used in turn; 1 for all servers by default", examples=[[3, 1]]
    )


Macro = Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")]


class Program(Model):
    """The P4 in every switch: `frontage.p4`, optionally modified."""

    overlay: str | None = Field(
        None,
        description="a folder beside the scenario, whose files replace the files of p4src with the same path",
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
"""Queue disciplines that the simulator implements itself, without the P4 program."""


class Scheduler(Model):
    kind: SchedulerKind = Field(SchedulerKind.FIFO, description="one of " + ", ".join(SchedulerKind), examples=["aifo"])
    rank: Literal["unsent", "segment"] = Field(
        "unsent",
        description="the rank of a packet: 'unsent' bytes of its flow, or bytes from the 'segment' to the end of its flow (TCP only)",
        examples=["unsent"],
    )
    window: int = Field(20, ge=1, description="AIFO's W: the number of ranks in the window", examples=[20])
    sample: int = Field(15, ge=1, description="the sampling interval: one of this many packets enters the window", examples=[15])
    k: float = Field(0.1, ge=0, lt=1, description="AIFO's headroom as a share of the queue", examples=[0.1])
    ecn_threshold: int | None = Field(
        None, ge=1, description="the queue depth in packets at which ECN marking starts, for DCTCP", examples=[65]
    )


class Flow(Model):
    """A single flow, which the client requests from the server's own address."""

    client: str = Field(description="the name of a client", examples=["c1"])
    server: str = Field(description="the name of a server", examples=["s1"])
    size: Size = Field(gt=0, description="bytes of the response", examples=["1MB"])
    start: Duration = Field(0, description="the time of the request", examples=["1ms"])
    rpt: tuple[tuple[Duration, Duration], ...] = Field(
        (),
        description="times and the RPT that packets carry from each time on, instead of the flow's real RPT",
        examples=[[["0s", "100us"]]],
    )


class Workload(Model):
    flows: tuple[Flow, ...] = Field((), description="single flows, instead of `sizes` and `load`")
    sizes: str = Field(
        "websearch",
        description="'websearch', 'websearch-steps', 'datamining', 'cachefollower', 'hadoop', 'fixed:BYTES' or 'uniform:LOW-HIGH'",
        examples=["websearch"],
    )
    load: float = Field(0.8, gt=0, le=1.5, description="offered bytes of flows as a share of the bottleneck's rate", examples=[0.8])
    duration: Duration = Field(10**9, description="the time during which flows arrive", examples=["1s"])
    drain: Duration = Field(10 * 10**9, description="the time for flows to finish after that", examples=["10s"])
    request: Size = Field(100, description="bytes of a request", examples=["100B"])
    incast: int | None = Field(
        None, ge=2, description="the number of flows that begin together, each from another server", examples=[32]
    )

    @field_validator("sizes")
    @classmethod
    def _check_sizes(cls, name: str) -> str:
        flow_sizes(name)
        return name


class Scenario(Model):
    title: str = Field(description="what the figure shows", examples=["FCT against load"])
    seeds: int = Field(
        10, ge=1, le=10_000, description="the number of runs of each combination, with the seeds 1, 2, ...", examples=[10]
    )
    topology: Annotated[Testbed | LeafSpine | Graph, Field(discriminator="kind")] = Field(Testbed(), description="the topology")
    transport: Annotated[Tcp | Quic, Field(discriminator="protocol")] = Field(
        Tcp(), description="the transport protocol of the hosts"
    )
    balancer: Balancer = Field(Balancer(), description="the assignment of the VIP's flows to servers")
    scheduler: Scheduler = Field(Scheduler(), description="the admission and order of packets at ports")
    workload: Workload = Field(Workload(), description="the flows")
    program: Program = Field(Program(), description="the P4 program in the switches")
    record: Duration | None = Field(
        None, description="the interval at which loads, queues and throughput are recorded", examples=["1ms"]
    )
    vary: dict[str, tuple[Any, ...] | dict[str, dict[str, Any]]] = Field(
        default_factory=dict,
        description="fields with their values, or a label whose values each set several fields; all combinations run",
    )
    full: dict[str, Any] = Field(default_factory=dict, description="the fields that --full changes, to the published scale")

    @field_validator("transport", mode="before")
    @classmethod
    def _default_to_tcp(cls, given: Any) -> Any:
        return {"protocol": "tcp", **given} if isinstance(given, dict) else given


def read(file: Path) -> Document:
    """Parse a scenario file, with the positions of its values. Raises ConfigError."""
    try:
        return parse(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(file, [Problem((), "no such file", "give the path of a scenario file")]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(file, [Problem((), f"cannot be read: {error}", "make it a readable UTF-8 text file")]) from None
    except DocumentError as error:
        raise ConfigError(file, error.problems) from None


def load(file: Path | str) -> Scenario:
    """Read and check a scenario file. Raises ConfigError, which names every problem."""
    file = Path(file)
    document = read(file)
    data: Plain = document.data if document.data is not None else {}
    try:
        return Scenario.model_validate(data)
    except ValidationError as error:
        raise ConfigError(file, explain(error, document, Scenario)) from None
