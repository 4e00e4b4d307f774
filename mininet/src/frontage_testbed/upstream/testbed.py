# SPDX-License-Identifier: Apache-2.0
"""The TCP testbed of a switch that learns its routes from upstream routers."""

from __future__ import annotations

import json
from typing import Any, Self

from ..datacentre.deployment import Deployment
from ..datacentre.services import WEB
from ..datacentre.settings import Settings
from ..datacentre.testbed import Testbed
from ..fleet.addresses import EdgeAddresses
from ..fleet.edges import Edges
from ..fleet.routing import SPEAKER
from ..frr import Frr
from ..nodes import Topo, run_script
from ..sandbox import Sandbox
from .addresses import BMP4, TRANSIT, Upstream
from .routing import router_configuration, transit_configuration, with_learning
from .topology import BMP_INTERFACE, UpstreamNetwork

ROUTERS = [Upstream(0), Upstream(1)]


def upstream_testbed(parts: Deployment, settings: Settings, box: Sandbox, *, cookies: bool = True) -> UpstreamTestbed:
    """Return the testbed, not yet up."""
    edges = Edges(
        [EdgeAddresses(0)],
        parts.switch,
        settings,
        controller=parts.controller,
        p4info=parts.p4 / "frontage.p4info.txtpb",
        json_file=parts.p4 / "frontage.json",
        directory=box.scratch / "edge",
        services=WEB,
    )
    edges.more_ports_of[0] = {router.port: EdgeAddresses(0).interface(router.port) for router in ROUTERS[1:]}
    return UpstreamTestbed(settings, box.scratch, edges, parts.agents(settings, box, cookies=cookies))


class UpstreamTestbed(Testbed):
    """A switch whose routes to clients come from two upstream routers, inside its context."""

    edge: Edges
    transit: Frr
    speaker: Frr
    routers: list[Frr]

    def topology(self) -> Topo:
        """Return the network, not yet up."""
        return UpstreamNetwork(settings=self.settings, edge=self.edge.edges[0], routers=ROUTERS)

    def __enter__(self) -> Self:
        super().__enter__()
        run_script("bmp", [f"ip addr add {BMP4}/30 dev {BMP_INTERFACE}"])
        self.transit = Frr(self.network[TRANSIT], self.scratch / "frr-transit")
        self.transit.start(transit_configuration(ROUTERS, self.client_addresses))
        self.routers = [Frr(self.network[router.name], self.scratch / f"frr-{router.name}") for router in ROUTERS]
        for router, frr in zip(ROUTERS, self.routers, strict=True):
            frr.start(router_configuration(router))
        self.speaker = Frr(self.network[SPEAKER], self.scratch / "frr-speaker", bmp=True)
        self.speaker.start()
        self.edge.write_configuration(with_learning(self.edge.config.read_text(), ROUTERS, self.speaker))
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        for frr in (self.speaker, *self.routers, self.transit):
            frr.stop()

    def route(self, address: str) -> Any:
        """Return the controller's explanation of the route to an address."""
        return json.loads(self.edge.frontage("route", address, "--json"))[0]

    def learned(self) -> Any:
        """Return the part of the controller's status about learned routes."""
        return json.loads(self.edge.frontage("status", "--json"))["learned"]["devices"]["edge1"]
