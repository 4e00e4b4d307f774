# SPDX-License-Identifier: Apache-2.0
"""Explains where a switch sends the packets to an address."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any

from frontage.config import Config
from frontage.config.routing import PrefixTable
from frontage.fields import IPAddress, IPNetwork


def route_to(config: Config, address: IPAddress, learned: Mapping[str, Any]) -> dict[str, Any]:
    """Return the route of one switch to an address, and the learned paths, by the answer of `Learner.explain`."""
    name = config.device.name
    found = learned.get(name, {"prefix": None, "next_hops": [], "down": [], "paths": []})
    items: list[tuple[IPNetwork, dict[str, Any]]] = []

    def add(prefix: IPNetwork, source: str, port: str | None, next_hops: list[str]) -> None:
        items.append((prefix, {"prefix": str(prefix), "source": source, "port": port, "next_hops": next_hops}))

    if found["prefix"] is not None:
        add(ip_network(found["prefix"]), "learned", None, found["next_hops"])
    for route in config.routes:
        add(route.prefix, "static", route.port, [str(route.next_hop or route.mac)])
    for host in config.on_link_hosts:
        add(ip_network(host.address), "link", host.port, [str(host.address)])
    route_entry = PrefixTable(items).lookup(address)
    return {"device": name, "route": route_entry, "paths": found["paths"], "down": found["down"]}
