# SPDX-License-Identifier: Apache-2.0
"""The service addresses that a switch resolves (Artemis, sections 3.4 and 6.2): it can forward first flights to a replica.

A site without a replica of a service redirects its clients to another site, so it need not have replicas to announce the address. A
site that would drop first flights must not attract them. A site with replicas announces the address even if it reaches no other site,
because it may be the last one. If the mapping still sends clients to a lost site, the next mapping has to correct that.
"""

from __future__ import annotations

from collections.abc import Mapping

from frontage.config import Config
from frontage.config.links import Resolved
from frontage.config.routing import RoutingTable
from frontage.config.sites import Artemis
from frontage.config.vips import Vip
from frontage.fields import IPAddress
from frontage.state.steering import EndUserMapping

DEFAULT_REGION = 0


def unresolved(
    config: Config, mapping: EndUserMapping, neighbors: Mapping[IPAddress, Resolved | None], min_servers: int
) -> frozenset[str]:
    """Return the names of the VIPs that are service addresses and that a switch does not resolve.

    ``config`` is that of the switch, with failed servers draining, and ``neighbors`` are the Ethernet addresses that it knows.
    """
    services = [(vip, vip.artemis) for vip in config.vips if vip.artemis is not None]
    if not services:
        return frozenset()
    complete = config.complete({address: found for address, found in neighbors.items() if found is not None})
    routing = RoutingTable(complete.routes, complete.on_link_hosts)

    def is_reachable(address: IPAddress) -> bool:
        hop = routing.lookup(address)
        return hop is not None and hop.mac is not None

    others = frozenset(site.id for site in config.other_sites if is_reachable(site.vtep))
    has_dispatcher = any(is_reachable(dispatcher.address) for dispatcher in config.dispatchers)
    active = config.active_servers

    def is_resolved(vip: Vip, service: Artemis) -> bool:
        if not service.dedicated_address:
            return has_dispatcher
        return active[vip.name] >= min_servers or _is_redirected(service, mapping, others)

    return frozenset(vip.name for vip, service in services if not is_resolved(vip, service))


def _is_redirected(service: Artemis, mapping: EndUserMapping, others: frozenset[int]) -> bool:
    """Return whether the mapping sends clients without a region to a site in ``others``.

    The choices for regions do not count: all sites have the same ones, so it would not help if clients entered elsewhere.
    """
    deployment = mapping.deployments.get(service.id)
    return deployment is not None and not others.isdisjoint(mapping.choices.get((deployment, DEFAULT_REGION), ()))
