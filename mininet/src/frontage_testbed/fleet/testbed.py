# SPDX-License-Identifier: Apache-2.0
"""The TCP testbed of a fleet."""

from __future__ import annotations

from collections.abc import Sequence

from ..datacentre.addresses import ServerAddresses
from ..datacentre.deployment import Deployment
from ..datacentre.services import WEB
from ..datacentre.settings import Settings
from ..datacentre.testbed import Testbed
from ..nodes import Topo
from ..sandbox import Sandbox
from .addresses import EdgeAddresses
from .edges import Edges
from .topology import INTERNET, FleetNetwork, spread_to_clients, spread_to_services


def fleet_testbed(
    parts: Deployment,
    settings: Settings,
    box: Sandbox,
    switches: int = 3,
    *,
    cookies: bool = True,
    in_service: Sequence[ServerAddresses] | None = None,
) -> FleetTestbed:
    """Return a TCP testbed with this many edge switches, not yet up. Without `cookies`, its servers have no agents."""
    edges = Edges(
        [EdgeAddresses(i) for i in range(switches)],
        parts.switch,
        settings,
        controller=parts.controller,
        p4info=parts.p4 / "frontage.p4info.txtpb",
        json_file=parts.p4 / "frontage.json",
        directory=box.scratch / "edge",
        services=WEB,
        in_service=in_service,
    )
    return FleetTestbed(settings, box.scratch, edges, parts.agents(settings, box, cookies=cookies))


class FleetTestbed(Testbed):
    """A testbed in which several edge switches serve the VIPs, inside its context."""

    edge: Edges

    def topology(self) -> Topo:
        """Return the network, not yet up."""
        return FleetNetwork(settings=self.settings, edges=self.edge.edges)

    def route_through(self, edges: list[EdgeAddresses]) -> None:
        """Let the router and the servers use these edge switches only, as routing protocols would."""
        spread_to_services(self.network[INTERNET], edges)
        spread_to_clients(list(self.servers.values()), edges)
