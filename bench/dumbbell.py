# SPDX-License-Identifier: Apache-2.0
"""Plain forwarding: pairs of hosts on either side of one link between two routers, as our simulator and as ns-3 read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from frontage_sim.addresses import TCP, mac, peer_mac
from frontage_sim.graph import Graph
from frontage_sim.grid import Run
from frontage_sim.resolve import resolve
from frontage_sim.scenario import Scenario
from frontage_sim.switches import Program
from frontage_sim.topologies import graph

PAIRS = 8
ACCESS, TRUNK = 40 * 10**9, 10 * 10**9
"""Rates of the links in bits/s. Packets wait at the trunk alone: a host of ns-3 would lose what is too much for its own link."""
DELAY = 5_000
"""Of each link, in nanoseconds."""
QUEUE = 250
"""Packets that wait at each end of a link."""
UNDER_WAY = 2**18
"""Bytes that a connection may have under way: two fill the queue, and where there are more, packets are lost."""
MIN_RTO, INITIAL_RTO = 5_000_000, 20_000_000
"""Nanoseconds."""

CLIENTS = [f"c{n}" for n in range(1, PAIRS + 1)]
SERVERS = [f"s{n}" for n in range(1, PAIRS + 1)]
SIDES = {"near": CLIENTS, "far": SERVERS}
_ACCESS = [
    {"ends": (router, host), "rate": ACCESS, "delay": DELAY, "queue": QUEUE} for router, hosts in SIDES.items() for host in hosts
]
SCENARIO = Scenario.model_validate(
    {
        "title": "two routers",
        "topology": {
            "kind": "graph",
            "switches": [{"name": name} for name in SIDES],
            "hosts": [{"name": name, "role": "client"} for name in CLIENTS]
            + [{"name": name, "role": "server"} for name in SERVERS],
            "links": [*_ACCESS, {"ends": tuple(SIDES), "rate": TRUNK, "delay": DELAY, "queue": QUEUE}],
        },
        "transport": {"congestion": "newreno", "min_rto": MIN_RTO, "initial_rto": INITIAL_RTO, "receive_window": UNDER_WAY},
        "workload": {"sizes": "websearch", "load": 0.5, "duration": 500_000_000},
    }
)


def resolved(frontage: Program, router: Path) -> dict[str, Any]:
    """For our simulator, with the plain router (BMv2 JSON) in both switches and without cookies."""
    plain = resolve(Run({}, 1, SCENARIO), frontage)
    net = graph(SCENARIO.topology)
    plain["programs"] = {"router": str(router)}
    plain["switches"] = [
        switch | {"program": "router", "packets_out": [], "entries": _entries(net, switch["name"])} for switch in plain["switches"]
    ]
    for host in plain["hosts"]:
        host["masks"] = False
        if host["server"]:
            host["server"]["cookie"] = False
    return plain


def _entries(net: Graph, switch: str) -> list[dict[str, Any]]:
    """A route to each host, and a next hop of its own."""
    entries = []
    for number, host in enumerate(net.hosts, 1):
        port = net.next_hop(switch, host.name, 0)
        assert port is not None
        ours, theirs = (address.replace(":", "") for address in (mac(net, port), peer_mac(net, port)))
        prefix = f"{int(TCP.address(net, host.name)):x}/32"
        entries += [
            {"table": "I.routes", "match": [prefix], "action": "set_next_hop", "params": [f"{number:x}"]},
            {"table": "I.next_hops", "match": [f"{number:x}"], "action": "forward", "params": [f"{port.number:x}", ours, theirs]},
        ]
    return entries


def options() -> list[str]:
    """The same for ns-3, but the flows: arguments of its dumbbell, and the attributes of its TCP."""
    transport = SCENARIO.transport.model_dump()
    tcp = {
        "TcpL4Protocol::SocketType": "ns3::TcpNewReno",
        "TcpSocket::SegmentSize": transport["mss"],
        "TcpSocket::InitialCwnd": transport["initial_window"],
        "TcpSocket::DelAckCount": 1,  # each segment is acknowledged at once
        "TcpSocket::ConnTimeout": f"{INITIAL_RTO}ns",
        "TcpSocketBase::MinRto": f"{MIN_RTO}ns",
        # By the sender's limit: one that has filled the receiver's window and lost a packet crashes ns-3 3.37.
        "TcpSocket::SndBufSize": UNDER_WAY,
        "TcpSocket::RcvBufSize": 4 * UNDER_WAY,
    }
    rates = {"access": f"{ACCESS}bps", "trunk": f"{TRUNK}bps"}
    own = {"pairs": PAIRS, **rates, "delay": f"{DELAY}ns", "queue": QUEUE, "request": SCENARIO.workload.request}
    return [f"--{name}={value}" for name, value in own.items()] + [f"--ns3::{name}={value}" for name, value in tcp.items()]
