# SPDX-License-Identifier: Apache-2.0
"""Configurations of a site with several switches, balancers and real servers."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from frontage_demo.artemis import siteconfig
from frontage_testbed.handoffconfig import RealServer, handed_route, handoff, proxied_route, real_server
from frontage_testbed.wan.addresses import PORT, SERVER_PORT, SiteAddresses

from .addresses import (
    BACKBONE_PORT,
    BACKBONE_SIDE,
    CLIENT_PORT,
    CLIENT_SIDE,
    RACK_PORT,
    REAL_PORT,
    Balancer,
    Edge,
    balancers,
    edges,
    plain_vip,
    real_servers,
)
from .parts import Parts

SERVICE = "films"
"""Name of the VIP."""
METRICS = "127.0.0.1:9153"
"""Address of the metrics in each host's own network."""
EDGE_RATE = 12_000_000
"""Rate of an edge switch's port to clients in bit/s: the bottleneck."""
EDGE_QUEUE = 60
"""Depth of its queue in packets."""

_REAL_SERVER_FIELDS = f"""\
metrics = "{METRICS}"
access_log = "{{name}}.json"

[cookie]
keys = "keys.toml"
bandwidth = "100mbit"
"""
_REAL_SERVER_ROUTES = """\
[[route]]
path = "/"
directory = "../objects"
"""


def controller(site: SiteAddresses, others: list[SiteAddresses], document: dict[str, Any], parts: Parts) -> dict[str, Any]:
    """Return the configuration of the site's controller: that of the Artemis testbed, for this site's switches and servers."""
    document = _fleet(site, others, copy.deepcopy(document))
    if not parts.steering:
        _replace_steering(site, document, parts)
    for scheduled in (port for device in document["devices"] for port in device["ports"] if "scheduler" in port):
        if parts.scheduling is None:
            del scheduled["scheduler"]
        else:
            scheduled["scheduler"]["k"] = parts.scheduling
    return document


def _fleet(site: SiteAddresses, others: list[SiteAddresses], document: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration for several switches, balancers and real servers instead of one switch and one server."""
    device = document.pop("device")
    for section in ("ports", "routes", "neighbors"):
        document.pop(section)
    document["devices"] = [
        copy.deepcopy(device) | {"name": edge.name, "address": edge.grpc} | _network(edge, others) for edge in edges(site)
    ]
    document["servers"] = [
        {"name": b.name, "vip": SERVICE, "address": b.dip, "port": SERVER_PORT, "sid": b.sid, "tunnel_address": b.address}
        for b in balancers(site)
    ]
    document["real_servers"] = [
        {"name": real.name, "port": "real", "addresses": [real.address], "for": [SERVICE]} for real in real_servers(site)
    ]
    return document


def _network(edge: Edge, others: list[SiteAddresses]) -> dict[str, object]:
    """Return the sections about the network of one switch."""
    (client, router), (backbone, backbone_router) = edge.uplink(CLIENT_SIDE), edge.uplink(BACKBONE_SIDE)
    ports = [
        _port(edge, CLIENT_PORT, "wan", "client", client) | {"scheduler": {"kind": "aifo", "capacity": EDGE_QUEUE}},
        _port(edge, RACK_PORT, "rack", "server", edge.rack, edge.dispatchers),
        _port(edge, REAL_PORT, "real", "real-server", edge.real),
        _port(edge, BACKBONE_PORT, "backbone", "site", backbone),
    ]
    routes = [{"prefix": "::/0", "port": "wan", "next_hop": router}]
    routes += [{"prefix": f"{site.vtep}/128", "port": "backbone", "next_hop": backbone_router} for site in others]
    routes += [{"prefix": b.server_prefix, "port": "rack", "next_hop": b.address} for b in balancers(edge.site)]
    return {"ports": ports, "routes": routes, "neighbors": [{"address": edge.site.dispatcher, "port": "rack"}]}


def _port(edge: Edge, number: int, name: str, role: str, *gateways: str) -> dict[str, object]:
    return {"id": number, "name": name, "role": role, "mac": edge.mac(number), "gateways": [f"{own}/64" for own in gateways]}


def _replace_steering(site: SiteAddresses, document: dict[str, Any], parts: Parts) -> None:
    """Replace the service address and its steering by the site's own address, which is in DNS."""
    for section in ("instances", "site", "sites", "dispatchers", "mapping"):
        document.pop(section)
    for device in document["devices"]:
        device["ports"] = [port for port in device["ports"] if port["role"] != "site"]
        device["routes"] = [route for route in device["routes"] if route["port"] != "backbone"]
    vip = {"name": SERVICE, "address": plain_vip(site), "protocol": "udp", "port": PORT}
    cookies = {"policy": "cclb4", "cookie_prefix": site.cookie_prefix}
    document["vips"] = [vip | (cookies if parts.balancing else {"policy": "hash"})]
    for server in document["servers"]:
        del server["tunnel_address"]


def balancer(own: Balancer, log: Path, parts: Parts) -> str:
    """Return the configuration of a balancer.

    It delegates all requests to the site's real servers, or without the hand-off proxies them to one of these.
    """
    fields = f'metrics = "{METRICS}"\n'
    routes = handed_route(parts.handoff) if parts.handoff else proxied_route(real_servers(own.site)[own.index])
    if not parts.balancing:
        return siteconfig.plain(SERVER_PORT, f'{fields}access_log = "{log}"\n', routes)
    sections = "\n" + handoff(own.name, real_servers(own.site)) if parts.handoff else ""
    if parts.steering:
        return siteconfig.replica(own.site, own, log, dispatched=True, fields=fields, sections=sections, routes=routes)
    return siteconfig.cookie_server(own.site, own, log, fields=fields, sections=sections, routes=routes)


def of_real_server(site: SiteAddresses, own: RealServer) -> str:
    """Return the configuration of a real server."""
    names = [one.name for one in balancers(site)]
    return real_server(own, names, _REAL_SERVER_FIELDS.format(name=own.name), _REAL_SERVER_ROUTES)
