# SPDX-License-Identifier: Apache-2.0
"""The controller's configuration file for the data centre's testbed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import yaml

from .addresses import (
    CLIENTS4,
    CLIENTS6,
    EDGE_CLIENT4,
    EDGE_CLIENT6,
    EDGE_CLIENT_MAC,
    EDGE_CLIENT_PORT,
    INTERNET4,
    INTERNET6,
    INTERNET_MAC,
    ServerAddresses,
)
from .services import Service

LOOK_AHEAD = 10_000
"""Remaining bytes above which a response counts as a future flow: the largest short flow, scaled."""


def scheduler_of(kind: str, packets: int | None) -> dict[str, object]:
    """Return `ports[].scheduler` for a queue of this many packets.

    All other fields keep the controller's defaults, such as rank 0 for packets without a cookie, which are few and short
    here.
    """
    return {"kind": kind, "capacity": packets}


def with_scheduler(text: str, kind: str, packets: int | None) -> str:
    """Return a configuration with another scheduler at the port towards the clients, whose queue holds `packets`."""
    document = yaml.safe_load(text)
    uplink = next(port for port in document["ports"] if port["id"] == EDGE_CLIENT_PORT)
    uplink.pop("scheduler", None)
    if kind != "fifo":
        uplink["scheduler"] = scheduler_of(kind, packets)
    changed: str = yaml.safe_dump(document, sort_keys=False)
    return changed


def with_real_servers(text: str, real_servers: Sequence[ServerAddresses], service: str, metrics: str) -> str:
    """Return a configuration in which the hosts `real_servers` are real servers (QDSR) of a service.

    `metrics` is the URL of the metrics of its load balancer.
    """
    document = yaml.safe_load(text)
    names = {real_server.name for real_server in real_servers}
    for port in document["ports"]:
        if port["name"] in names:
            port["role"] = "real-server"
    document["routes"] = [entry for entry in document["routes"] if entry["port"] not in names]
    document["real_servers"] = [{"name": r.name, "port": r.name, "addresses": r.address6, "for": service} for r in real_servers]
    for server in document["servers"]:
        server["metrics"] = metrics
    changed: str = yaml.safe_dump(document, sort_keys=False)
    return changed


def configuration(
    *,
    services: Sequence[Service],
    servers: Sequence[ServerAddresses],
    in_service: Sequence[ServerAddresses],
    policy: str,
    seed: int,
    grpc: str,
    cpu_port: int,
    pipes: int,
    chip_pipes: int,
    p4info: Path,
    json_file: Path,
    control_socket: Path,
    metrics: str,
    resolves_neighbors: bool = True,
) -> str:
    """Return the YAML text. It has ports for all `servers`, in `pipes` of the `chip_pipes`; the VIPs start with those `in_service`.

    The controller resolves the Ethernet addresses of all hosts, unless the switch's program cannot.
    """
    uplink = {"id": EDGE_CLIENT_PORT, "name": "internet", "role": "client", "mac": EDGE_CLIENT_MAC}
    uplink["gateways"] = [f"{EDGE_CLIENT4}/30", f"{EDGE_CLIENT6}/64"]
    ports = [uplink]
    ports += [
        {
            "id": server.edge_port(pipes),
            "name": server.name,
            "role": "server",
            "mac": server.gateway_mac,
            "gateways": [f"{server.gateway4}/24", f"{server.gateway6}/64"],
        }
        for server in servers
    ]
    hops = {CLIENTS4: INTERNET4, CLIENTS6: INTERNET6}
    routes = [{"prefix": prefix, "port": "internet", "next_hop": hop} for prefix, hop in hops.items()]
    if any(service.cookie_prefix for service in services):
        routes += [{"prefix": s.quic_prefix, "port": s.name, "next_hop": s.address6} for s in servers]
    endpoints = [
        {
            "name": service.server_name(s),
            "vip": service.name,
            "address": service.address_of(s),
            "port": service.server_port,
            "sid": service.sid_of(s),
        }
        for service in services
        for s in in_service
    ]
    vips = []
    for service in services:
        vip: dict[str, object] = {"name": service.name, "address": service.vip, "protocol": service.protocol}
        vip |= {"port": service.port, "policy": service.policy or policy, "look_ahead": LOOK_AHEAD}
        if service.cookie_prefix:
            vip["cookie_prefix"] = service.cookie_prefix
        vips.append(vip)
    document = {
        "device": {
            "address": grpc,
            "device_id": 1,
            "cpu_port": cpu_port,
            "pipes": chip_pipes,
            "pipeline": {"p4info": str(p4info), "json": str(json_file)},
        },
        "ports": ports,
        "routes": routes,
        "vips": vips,
        "servers": endpoints,
        # A fixed key: packets never leave the namespaces, and runs must be repeatable.
        "keys": [{"id": 1, "secret": random.Random(f"key {seed}").randbytes(32).hex()}],
        "control_socket": str(control_socket),
        "metrics": {"address": metrics},
    }
    if not resolves_neighbors:
        document["neighbors"] = _neighbors(servers)
    text: str = yaml.safe_dump(document, sort_keys=False)
    return text


def _neighbors(servers: Sequence[ServerAddresses]) -> list[dict[str, str]]:
    """Return the Ethernet addresses of the hosts beside the switch."""
    hosts = [("internet", INTERNET_MAC, (INTERNET4, INTERNET6))]
    hosts += [(s.name, s.mac, (s.address4, s.address6)) for s in servers]
    return [{"address": address, "port": port, "mac": mac} for port, mac, addresses in hosts for address in addresses]
