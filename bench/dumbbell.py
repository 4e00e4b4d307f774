# SPDX-License-Identifier: Apache-2.0
"""The dumbbell topology, pairs of hosts at both sides of a link between two routers, as input of our simulator and of ns-3."""

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
"""Rates of the links in bits/s. The trunk is the only bottleneck: ns-3 hosts would drop packets that exceed the rate of their own link."""
DELAY = 5_000
"""Propagation delay of each link in nanoseconds."""
QUEUE = 250
"""Capacity of the queue at each end of a link in packets."""
MAX_IN_FLIGHT = 2**18
"""Bytes that a connection may have in flight. Two connections fill the queue; with more, packets are lost."""
MIN_RTO, INITIAL_RTO = 5_000_000, 20_000_000
"""Minimum and initial retransmission timeout in nanoseconds."""

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
        "transport": {"congestion": "newreno", "min_rto": MIN_RTO, "initial_rto": INITIAL_RTO, "receive_window": MAX_IN_FLIGHT},
        "workload": {"sizes": "websearch", "load": 0.5, "duration": 500_000_000},
    }
)


def resolved(frontage: Program, router: Path) -> dict[str, Any]:
    """Return the resolved scenario for our simulator, with the plain router (BMv2 JSON) in both switches and without cookies."""
    scenario = resolve(Run({}, 1, SCENARIO), frontage)
    net = graph(SCENARIO.topology)
    scenario["programs"] = {"router": str(router)}
    scenario["switches"] = [
        switch | {"program": "router", "packets_out": [], "entries": _entries(net, switch["name"])}
        for switch in scenario["switches"]
    ]
    for host in scenario["hosts"]:
        host["masks"] = False
        if host["server"]:
            host["server"]["cookie"] = False
    return scenario


def _entries(net: Graph, switch: str) -> list[dict[str, Any]]:
    """Return a route and a next hop for each host."""
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
    """Return the same scenario without the flows for ns-3: options of ns3/dumbbell.cc, and attributes of its TCP."""
    transport = SCENARIO.transport.model_dump()
    tcp = {
        "TcpL4Protocol::SocketType": "ns3::TcpNewReno",
        "TcpSocket::SegmentSize": transport["mss"],
        "TcpSocket::InitialCwnd": transport["initial_window"],
        "TcpSocket::DelAckCount": 1,  # acknowledge each segment at once
        "TcpSocket::ConnTimeout": f"{INITIAL_RTO}ns",
        "TcpSocketBase::MinRto": f"{MIN_RTO}ns",
        # The limit is the sender's: ns-3 3.37 crashes if a packet is lost while the receiver's window is full.
        "TcpSocket::SndBufSize": MAX_IN_FLIGHT,
        "TcpSocket::RcvBufSize": 4 * MAX_IN_FLIGHT,
    }
    rates = {"access": f"{ACCESS}bps", "trunk": f"{TRUNK}bps"}
    scenario_options = {"pairs": PAIRS, **rates, "delay": f"{DELAY}ns", "queue": QUEUE, "request": SCENARIO.workload.request}
    return [f"--{name}={value}" for name, value in scenario_options.items()] + [
        f"--ns3::{name}={value}" for name, value in tcp.items()
    ]
