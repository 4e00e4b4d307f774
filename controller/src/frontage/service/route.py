# SPDX-License-Identifier: Apache-2.0
"""Explains where a switch sends the packets to an address."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any

from frontage.config import Config
from frontage.fields import IPAddress


def route_to(config: Config, address: IPAddress, learned: Mapping[str, Any]) -> dict[str, Any]:
    """Return the route of one switch to an address, and the learned paths, by the answer of `Learner.explain`."""
    name = config.device.name
    found = learned.get(name, {"prefix": None, "next_hops": [], "down": [], "paths": []})
    candidates: list[tuple[int, int, dict[str, Any]]] = []
    entry: dict[str, Any]
    for host in config.on_link_hosts:
        if host.address == address:
            entry = {"prefix": str(ip_network(address)), "source": "link", "port": host.port, "next_hops": [str(address)]}
            candidates.append((address.max_prefixlen, 2, entry))
    for route in config.routes:
        if route.prefix.version == address.version and address in route.prefix:
            hop = route.next_hop or route.mac
            entry = {"prefix": str(route.prefix), "source": "static", "port": route.port, "next_hops": [str(hop)]}
            candidates.append((route.prefix.prefixlen, 1, entry))
    if found["prefix"] is not None:
        entry = {"prefix": found["prefix"], "source": "learned", "port": None, "next_hops": found["next_hops"]}
        candidates.append((ip_network(found["prefix"]).prefixlen, 0, entry))
    best = max(candidates, key=lambda candidate: candidate[:2], default=None)
    return {"device": name, "route": best[2] if best else None, "paths": found["paths"], "down": found["down"]}
