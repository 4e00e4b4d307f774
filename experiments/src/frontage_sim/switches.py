# SPDX-License-Identifier: Apache-2.0
"""The contents of each simulated switch: the controller's configuration, and the entries that the real controller installs for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_network
from itertools import cycle
from pathlib import Path
from typing import Any

from frontage.config import Config, loads
from frontage.p4.p4info import Schema
from frontage.state.offline import contents, plain_entries, plain_packets, plain_sessions
from frontage_sim.addresses import SERVER_PORT, SERVICES, mac, peer_mac, sid
from frontage_sim.graph import Graph, Port, Switch
from frontage_sim.scenario import Balancer, Protocol, Scheduler, SchedulerKind

CPU_PORT = 510
KEY = {"id": 1, "secret": "00112233445566778899aabbccddeeff"}
"""A fixed key: no attack is simulated."""


@dataclass(frozen=True)
class Program:
    """The compiled P4 program."""

    p4info: Path
    json_file: Path


def configuration(
    graph: Graph, switch: Switch, balancer: Balancer, scheduler: Scheduler, protocol: Protocol, program: Program
) -> Config:
    """Return the configuration that an operator would write for this switch."""
    service = SERVICES[protocol]
    next_hops = [
        (service.network(graph, host.name), graph.next_hop(switch.name, host.name, n)) for n, host in enumerate(graph.hosts)
    ]
    routes = [{"prefix": str(network), **_next_hop(graph, port)} for network, port in next_hops if port]
    # Servers' packets may arrive on any of these ports.
    server_ports = {port.number for host in graph.hosts if host.is_server for port in graph.next_hops(switch.name, host.name)}
    settings: dict[str, Any] = {
        "device": {
            "address": "unix:unused",
            "cpu_port": CPU_PORT,
            "pipeline": {"p4info": str(program.p4info), "json": str(program.json_file)},
        },
        "ports": [
            {
                "id": port.number,
                "name": f"p{port.number}",
                "role": "server" if port.number in server_ports else "client",
                "mac": mac(graph, port),
                **(_scheduler(scheduler, port) if switch.scheduled else {}),
            }
            for port in graph.ports[switch.name]
        ],
        "routes": routes,
        "keys": [KEY],
    }
    if switch.balances:
        vip = {"name": "vip", "protocol": service.protocol, "address": str(service.vip), "port": service.port}
        cookies = {"cookie_prefix": str(service.cookie_prefix)} if service.cookie_prefix else {}
        settings["vips"] = [{**vip, **cookies, "policy": balancer.policy.value, "alpha": balancer.alpha}]
        servers = [host.name for host in graph.hosts if host.role == "server"]
        settings["servers"] = [
            {
                "name": name,
                "vip": "vip",
                "address": str(service.address(graph, name)),
                "port": SERVER_PORT,
                "sid": sid(graph, name),
                "weight": weight,
            }
            for name, weight in zip(servers, cycle(balancer.weights or (1,)), strict=False)
        ]
    elif (port := _to_balancer(graph, switch)) is not None:
        routes.append({"prefix": str(ip_network(service.vip)), **_next_hop(graph, port)})
    return loads(json.dumps(settings), Path(f"{switch.name}.yaml"))


def contents_of(
    graph: Graph, switch: Switch, balancer: Balancer, scheduler: Scheduler, protocol: Protocol, program: Program
) -> dict[str, Any]:
    """Return the controller's table entries in the simulator's format."""
    config = configuration(graph, switch, balancer, scheduler, protocol, program)
    schema = _schema(program.p4info)
    state, packets_out = contents(config, schema)
    return {
        "entries": list(plain_entries(schema, state)),
        "packets_out": list(plain_packets(schema, packets_out)),
        "clone_sessions": list(plain_sessions(config, schema)),
    }


def _scheduler(scheduler: Scheduler, port: Port) -> dict[str, Any]:
    """Return the scheduler section of a port; the simulator implements ideal schedulers itself."""
    marking = {"ecn_threshold": scheduler.ecn_threshold} if scheduler.ecn_threshold else {}
    match scheduler.kind:
        case SchedulerKind.AIFO:
            parameters = scheduler.model_dump(include={"window", "sample", "k"})
            return {"scheduler": {"kind": "aifo", "capacity": port.link.queue, **parameters}, **marking}
        case SchedulerKind.SP_PIFO:
            return {"scheduler": {"kind": "sp-pifo"}, **marking}
        case _:
            return marking


@cache
def _schema(p4info: Path) -> Schema:
    return Schema.load(p4info)


def _next_hop(graph: Graph, port: Port) -> dict[str, str]:
    return {"port": f"p{port.number}", "mac": peer_mac(graph, port)}


def _to_balancer(graph: Graph, switch: Switch) -> Port | None:
    """Return the port towards the nearest switch that serves the VIP."""
    balancers = [other.name for other in graph.switches if other.balances and switch.name in graph.distance(other.name)]
    nearest = min(balancers, key=lambda name: graph.distance(name)[switch.name], default=None)
    return graph.next_hop(switch.name, nearest, 0) if nearest else None
