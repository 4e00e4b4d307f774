# SPDX-License-Identifier: Apache-2.0
"""Translates a run into the simulator's input, with explicit addresses, table entries and queues."""

from __future__ import annotations

from functools import cache
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from frontage.state.blocks.aifo import limit
from frontage_sim.addresses import SERVER_PORT, SERVICES, mac, peer_mac, sid
from frontage_sim.flow_sizes import flow_sizes
from frontage_sim.graph import Graph, Host, Link
from frontage_sim.grid import Run
from frontage_sim.scenario import DISCIPLINES, Balancer, Protocol, Quic, Scenario, Scheduler, SchedulerKind, Tcp
from frontage_sim.switches import CPU_PORT, KEY, Program, contents_of
from frontage_sim.topologies import graph

MICROSECOND = 1000
MAX_RTO = 60 * 10**9
"""Maximum RTO in nanoseconds (RFC 6298, 2.5)."""


def resolve(run: Run, program: Program) -> dict[str, Any]:
    """Return the input of ``frontage-simulator``."""
    scenario = run.scenario
    net = graph(scenario.topology)
    return {
        "seed": run.seed,
        "end": scenario.workload.duration + scenario.workload.drain,
        "programs": {"frontage": str(program.json_file)},
        "switches": _switches(net, scenario.balancer, scenario.scheduler, scenario.transport.protocol, program),
        "hosts": [_host(net, host, scenario) for host in net.hosts],
        "links": [_link(net, link, scenario.scheduler) for link in net.links],
        "workload": _workload(net, scenario),
        "record": {"flows": True, "queues": scenario.record, "loads": scenario.record, "throughput": scenario.record},
    }


@cache
def _switches(net: Graph, balancer: Balancer, scheduler: Scheduler, protocol: Protocol, program: Program) -> list[dict[str, Any]]:
    return [
        {
            "name": switch.name,
            "program": "frontage",
            "cpu_port": CPU_PORT,
            "ports": [{"number": port.number, "link": _name(port.link)} for port in net.ports[switch.name]],
            **contents_of(net, switch, balancer, scheduler, protocol, program),
        }
        for switch in net.switches
    ]


def _name(link: Link) -> str:
    return f"{link.a}-{link.b}"


def _host(net: Graph, host: Host, scenario: Scenario) -> dict[str, Any]:
    (port,) = net.ports[host.name]
    transport = scenario.transport
    server = {
        "sid": sid(net, host.name),
        "port": SERVER_PORT,
        "look_ahead": scenario.balancer.look_ahead,
        "bandwidth": host.rate or port.link.rate,
        "cookie": True,
        "rank": scenario.scheduler.rank,
        "key": KEY if transport.protocol is Protocol.QUIC else None,
    }
    return {
        "name": host.name,
        "mac": mac(net, port),
        "addresses": [str(SERVICES[transport.protocol].address(net, host.name))],
        "gateway_mac": peer_mac(net, port),
        "link": _name(port.link),
        "masks": host.is_client and not net.balances,
        "tcp": (transport if isinstance(transport, Tcp) else Tcp()).model_dump(exclude={"protocol"})
        | {"max_rto": MAX_RTO, "timestamps": True},
        "quic": transport.model_dump(exclude={"protocol"}) if isinstance(transport, Quic) else None,
        "server": server if host.is_server else None,
    }


def _link(net: Graph, link: Link, scheduler: Scheduler) -> dict[str, Any]:
    (a,) = (port for port in net.ports[link.a] if port.link is link)
    (b,) = (port for port in net.ports[link.b] if port.link is link)
    scheduled = {switch.name for switch in net.switches if switch.scheduled}
    return {
        "name": _name(link),
        "a": f"{a.node}:{a.number}",
        "b": f"{b.node}:{b.number}",
        "rate": link.rate,
        "overhead": link.overhead,
        "delay": link.delay,
        "loss_ppb": link.loss_ppb,
        "queue_packets": link.queue if link.queue_bytes is None else None,
        "queue_bytes": link.queue_bytes,
        "discipline": _discipline(link, scheduler) if scheduled & {link.a, link.b} else "fifo",
    }


def _discipline(link: Link, scheduler: Scheduler) -> str | dict[str, Any]:
    if scheduler.kind is SchedulerKind.AIFO_EXACT:
        limits = [limit(link.queue, scheduler.window, scheduler.k, smaller) for smaller in range(scheduler.window + 1)]
        return {"aifo": {"limits": limits, "sample": scheduler.sample}}
    return DISCIPLINES.get(scheduler.kind, "fifo")


def _socket(address: IPv4Address | IPv6Address, port: int) -> str:
    return f"{address}:{port}" if address.version == 4 else f"[{address}]:{port}"


def _workload(net: Graph, scenario: Scenario) -> list[dict[str, Any]]:
    workload = scenario.workload
    service = SERVICES[scenario.transport.protocol]
    common = {"request_bytes": workload.request, "start": 0, "connection": "one-per-flow", "protocol": scenario.transport.protocol}
    direct = {host.name: _socket(service.address(net, host.name), SERVER_PORT) for host in net.hosts if host.is_server}
    if workload.flows:
        return [
            {
                "client": flow.client,
                "servers": [direct[flow.server]],
                "arrivals": {"times": [flow.start]},
                "sizes": {"fixed": flow.size},
                "rpt": [[at, rpt // MICROSECOND] for at, rpt in flow.rpt] or None,
                "stop": None,
                **common,
            }
            for flow in workload.flows
        ]
    sizes = flow_sizes(workload.sizes)
    clients = [host.name for host in net.hosts if host.is_client]
    rate = workload.load * net.bottleneck / 8 / sizes.mean() / len(clients) / (workload.incast or 1)
    return [
        {
            "client": client,
            "servers": [_socket(service.vip, service.port)]
            if net.balances
            else [direct[name] for name in direct if name != client],
            "arrivals": {"poisson": rate},
            "sizes": {"cdf": sizes.points},
            "stop": workload.duration,
            **({"burst": workload.incast} if workload.incast else {}),
            **common,
        }
        for client in clients
    ]
