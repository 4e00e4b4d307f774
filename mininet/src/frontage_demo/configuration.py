"""The controller's configuration file for the demo's world."""

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
    HTTP_PORT,
    INTERNET_MAC,
    VIP4,
    VIP6,
    ServerAddresses,
)

SERVICES = {"web": VIP4, "web6": VIP6}
"""The VIPs by name."""
LOOK_AHEAD = 10_000
"""Remaining bytes above which a response is expected to be active for some time yet: the largest short flow, scaled."""


def server_name(service: str, server: ServerAddresses) -> str:
    """The controller's name for a server of a service: a SID each, for a SID belongs to one VIP."""
    return f"{server.name}-{service}"


def configuration(
    *,
    servers: Sequence[ServerAddresses],
    in_service: Sequence[ServerAddresses],
    policy: str,
    seed: int,
    grpc: str,
    cpu_port: int,
    p4info: Path,
    json_file: Path,
    control_socket: Path,
    metrics: str,
) -> str:
    """The YAML text. Ports are for all `servers`; the VIPs begin with those `in_service`."""
    uplink = {"id": EDGE_CLIENT_PORT, "name": "internet", "role": "client", "mac": EDGE_CLIENT_MAC}
    uplink["gateways"] = [f"{EDGE_CLIENT4}/30", f"{EDGE_CLIENT6}/64"]
    ports = [uplink]
    neighbors = []
    for server in servers:
        ports.append(
            {
                "id": server.edge_port,
                "name": server.name,
                "role": "server",
                "mac": server.gateway_mac,
                "gateways": [f"{server.gateway4}/24", f"{server.gateway6}/64"],
            }
        )
        for address in (server.address4, server.address6):
            neighbors.append({"address": address, "port": server.name, "mac": server.mac})
    endpoints = [
        {"name": server_name("web", s), "vip": "web", "address": s.address4, "port": HTTP_PORT, "sid": s.sid4}
        for s in in_service
    ] + [
        {"name": server_name("web6", s), "vip": "web6", "address": s.address6, "port": HTTP_PORT, "sid": s.sid6}
        for s in in_service
    ]
    document = {
        "device": {
            "address": grpc,
            "device_id": 1,
            "cpu_port": cpu_port,
            "pipeline": {"p4info": str(p4info), "json": str(json_file)},
        },
        "ports": ports,
        "routes": [{"prefix": p, "port": "internet", "mac": INTERNET_MAC} for p in (CLIENTS4, CLIENTS6)],
        "neighbors": neighbors,
        "vips": [
            {"name": name, "address": address, "port": HTTP_PORT, "policy": policy, "look_ahead": LOOK_AHEAD}
            for name, address in SERVICES.items()
        ],
        "servers": endpoints,
        # The demo's packets never leave its namespaces, and runs are to be repeatable.
        "keys": [{"id": 1, "secret": random.Random(f"key {seed}").randbytes(32).hex()}],
        "control_socket": str(control_socket),
        "metrics": {"address": metrics},
    }
    text: str = yaml.safe_dump(document, sort_keys=False)
    return text
