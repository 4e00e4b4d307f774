# SPDX-License-Identifier: Apache-2.0
"""The BGP of the systems: preference and export by the neighbor's relation (Gao and Rexford, 2001).

A system prefers routes of customers to those of peers, and these to those of providers, whatever their length. It passes on to
peers and providers only its own routes and those of its customers. Routes with the community GRACEFUL_SHUTDOWN are the last
choice (RFC 8326).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..wan.addresses import SiteAddresses
from .addresses import client_prefix, link_address
from .plan import ADJACENCIES, SITE_ASN, Relation, System, Uplink, neighbors_of

PREFERENCE = {Relation.CUSTOMER: 200, Relation.PEER: 150, Relation.PROVIDER: 100}
"""Local preference by relation; it also marks the routes' origin in a community of the system."""
BFD = "bfd 3 100 100"
TIMERS = ("timers connect 1", "timers 3 9")


def configuration(system: System, sites: list[tuple[Uplink, SiteAddresses]]) -> str:
    """Return the configuration of a system's FRR. `sites` are its customers among the sites."""
    lines = list(_policies(system))
    lines += [f"router bgp {system.number}", f" bgp router-id 10.0.0.{system.number - 64495}"]
    lines += [" no bgp default ipv4-unicast", " no bgp network import-check", " bgp bestpath compare-routerid"]
    policies: list[tuple[str, Relation]] = []
    for index, neighbor, relation in neighbors_of(system.number):
        address = link_address(index, first=ADJACENCIES[index].one == neighbor.number)
        lines += [f" neighbor {address} remote-as {neighbor.number}", *(f" neighbor {address} {line}" for line in TIMERS)]
        policies.append((address, relation))
    for _, site in sites:
        address = site.speaker
        lines.append(f" neighbor {address} remote-as {SITE_ASN}")
        options = (*TIMERS, f"update-source {site.router}", "ebgp-multihop 4", BFD)
        lines += [f" neighbor {address} {option}" for option in options]
        policies.append((address, Relation.CUSTOMER))
    lines += [" address-family ipv6 unicast", "  maximum-paths 1"]
    if system.client:
        lines.append(f"  network {client_prefix(system)} route-map own")
    for address, relation in policies:
        lines += [f"  neighbor {address} activate", f"  neighbor {address} route-map from-{relation} in"]
        lines.append(f"  neighbor {address} route-map to-{relation} out")
    return "\n".join([*lines, " exit-address-family", "exit", ""])


def _policies(system: System) -> Iterator[str]:
    own = f"{system.number}:{PREFERENCE[Relation.CUSTOMER]}"
    yield f"bgp community-list standard customers permit {own}"
    yield "bgp community-list standard shutdown permit graceful-shutdown"
    yield from ("route-map own permit 10", f" set community {own}", "exit")
    for relation, preference in PREFERENCE.items():
        mark = f" set community {system.number}:{preference} additive"
        yield from (f"route-map from-{relation} permit 5", " match community shutdown", " set local-preference 0", mark, "exit")
        yield from (f"route-map from-{relation} permit 10", f" set local-preference {preference}", mark, "exit")
        yield f"route-map to-{relation} permit 10"
        yield from ([] if relation is Relation.CUSTOMER else [" match community customers"])
        yield "exit"
