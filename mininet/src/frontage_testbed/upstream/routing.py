# SPDX-License-Identifier: Apache-2.0
"""The BGP of the routers: the transit announces the clients' networks to the upstream routers, and these to the switch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import yaml

from ..datacentre.addresses import ClientAddresses
from ..fleet.routing import ASN, speaker4, speaker6
from ..frr import Frr
from .addresses import BMP_PORT, ROUTER_ASN, SPEAKER_BMP4, TRANSIT_ASN, Upstream

BFD = "bfd 3 100 100"


def router_configuration(router: Upstream) -> str:
    """Return the configuration of an upstream router."""
    multihop = ["update-source {source}", "ebgp-multihop 4", "timers connect 1", BFD]
    edge = router.uplink
    neighbors = [
        (speaker4(edge), ASN, [line.format(source=edge.router4) for line in multihop]),
        (speaker6(edge), ASN, [line.format(source=edge.router6) for line in multihop]),
        (router.transit4, TRANSIT_ASN, ["timers connect 1", BFD]),
        (router.transit6, TRANSIT_ASN, ["timers connect 1", BFD]),
    ]
    return _instance(ROUTER_ASN, edge.router4, neighbors)


def transit_configuration(routers: Sequence[Upstream], clients: Sequence[ClientAddresses]) -> str:
    """Return the configuration of the transit."""
    neighbors = [(a, ROUTER_ASN, ["timers connect 1", BFD]) for r in routers for a in (r.router4, r.router6)]
    networks = [
        *(f"{c.address4.rsplit('.', 1)[0]}.0/24" for c in clients),
        *(f"{c.address6.rsplit('::', 1)[0]}::/64" for c in clients),
    ]
    return _instance(TRANSIT_ASN, routers[0].transit4, neighbors, networks)


def _instance(asn: int, router_id: str, neighbors: Iterable[tuple[str, int, list[str]]], networks: Iterable[str] = ()) -> str:
    neighbors, networks = list(neighbors), list(networks)
    lines = [f"router bgp {asn}", f" bgp router-id {router_id}", " no bgp default ipv4-unicast", " no bgp ebgp-requires-policy"]
    lines += [" bgp bestpath as-path multipath-relax", " no bgp network import-check"]
    lines += [" bgp graceful-restart", " bgp graceful-restart preserve-fw-state"]
    for address, remote, options in neighbors:
        lines.append(f" neighbor {address} remote-as {remote}")
        lines += [f" neighbor {address} {option}" for option in options]
    for version in (4, 6):
        lines += [f" address-family ipv{version} unicast", "  maximum-paths 8"]
        lines += [f"  neighbor {address} activate" for address, _, _ in neighbors if (":" in address) == (version == 6)]
        lines += [f"  network {network}" for network in networks if (":" in network) == (version == 6)]
        lines.append(" exit-address-family")
    return "\n".join([*lines, "exit", ""])


def with_learning(text: str, routers: Sequence[Upstream], speaker: Frr) -> str:
    """Return the configuration of a fleet of one switch, with several uplinks and learned routes instead of static ones."""
    document = yaml.safe_load(text)
    (device,) = document["devices"]
    first = next(port for port in device["ports"] if port["name"] == "internet")
    for router in routers[1:]:
        edge = router.uplink
        more = {"id": router.port, "name": router.port_name, "mac": edge.uplink_mac}
        device["ports"].append({**first, **more, "gateways": [f"{edge.uplink4}/30", f"{edge.uplink6}/64"]})
    device["routes"] = [route for route in device["routes"] if route["port"] != "internet"]
    device["neighbors"] = [
        {"address": address, "port": "rack"} for r in routers for address in (speaker4(r.uplink), speaker6(r.uplink))
    ]
    document["bgp"] = {
        "asn": ASN,
        "router_id": speaker4(routers[0].uplink),
        "vtysh": speaker.vtysh,
        "neighbors": [
            {"address": address, "asn": ROUTER_ASN, "device": device["name"], "source": source}
            for r in routers
            for address, source in ((r.uplink.router4, speaker4(r.uplink)), (r.uplink.router6, speaker6(r.uplink)))
        ],
        "learn": {
            "ipv4": {"prefixes": [{"prefix": "0.0.0.0/0", "min_length": 8, "max_length": 24}]},
            "ipv6": {"prefixes": [{"prefix": "2000::/3", "min_length": 16, "max_length": 64}]},
            "bmp": f"{SPEAKER_BMP4}:{BMP_PORT}",
        },
    }
    changed: str = yaml.safe_dump(document, sort_keys=False)
    return changed
