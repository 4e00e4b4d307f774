# SPDX-License-Identifier: Apache-2.0
"""The TCP testbed of a fleet."""

from __future__ import annotations

import json
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from types import TracebackType
from typing import Self

from ..datacentre.addresses import ServerAddresses
from ..datacentre.deployment import Deployment
from ..datacentre.services import WEB
from ..datacentre.settings import Settings
from ..datacentre.testbed import Testbed
from ..frr import Frr
from ..nodes import Namespace, Topo
from ..sandbox import Sandbox
from .addresses import EdgeAddresses
from .edges import Edges
from .routing import SPEAKER, router_configuration, server_configuration, server_session_setup, with_bgp
from .topology import INTERNET, FleetNetwork, forget_clients, forget_services, spread_to_clients, spread_to_services

IPAddress = IPv4Address | IPv6Address


def fleet_testbed(
    parts: Deployment,
    settings: Settings,
    box: Sandbox,
    switches: int = 3,
    *,
    cookies: bool = True,
    in_service: Sequence[ServerAddresses] | None = None,
    password: str | None = None,
) -> FleetTestbed:
    """Return a TCP testbed with this many edge switches, not yet up.

    Without `cookies`, no agents run on its servers. With a BGP `password`, the router learns its routes by BGP.
    """
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
    testbed = FleetTestbed(settings, box.scratch, edges, parts.agents(settings, box, cookies=cookies))
    testbed.password = password
    return testbed


class FleetTestbed(Testbed):
    """A testbed in which several edge switches serve the VIPs, inside its context."""

    edge: Edges
    password: str | None = None
    """Password of BGP sessions; None for static routes instead of BGP."""
    router: Frr | None = None
    speaker: Frr | None = None
    server_frr: Sequence[Frr] = ()
    """The servers' routing daemons, if there is BGP."""

    def topology(self) -> Topo:
        """Return the network, not yet up."""
        return FleetNetwork(settings=self.settings, edges=self.edge.edges)

    def __enter__(self) -> Self:
        super().__enter__()
        if self.password is not None:
            self._start_bgp(self.password)
        return self

    def __exit__(self, *error: type[BaseException] | BaseException | TracebackType | None) -> None:
        super().__exit__(*error)
        for frr in (self.speaker, self.router, *self.server_frr):
            if frr is not None:
                frr.stop()

    def _start_bgp(self, password: str) -> None:
        """Replace the router's static routes to VIPs and the servers' static default routes by BGP."""
        router, edges = self.network[INTERNET], self.edge.edges
        forget_services(router)
        forget_clients(list(self.servers.values()))
        self.router = Frr(router, self.scratch / "frr-router")
        self.router.start(router_configuration(edges, password))
        self.speaker = Frr(self.network[SPEAKER], self.scratch / "frr-speaker")
        self.speaker.start()
        file = self.scratch / "bgp.password"
        file.write_text(password)
        for server in self.server_addresses:
            host = self.servers[server.index]
            host.run(["sh", "-euc", "\n".join(server_session_setup(server, edges))])
            frr = Frr(host, self.scratch / f"frr-{server.name}")
            frr.start(server_configuration(server, edges, password))
            self.server_frr = [*self.server_frr, frr]
        text = self.edge.config.read_text()
        self.edge.write_configuration(with_bgp(text, edges, self.server_addresses, self.speaker, str(file)))

    def next_hops(self, address: str) -> set[IPAddress]:
        """Return the router's next hops for an address."""
        return _next_hops(self.network[INTERNET], address)

    def default_routes(self, server: ServerAddresses, version: int) -> set[IPAddress]:
        """Return the next hops of a server's default route."""
        return _next_hops(self.servers[server.index], {4: "0.0.0.0/0", 6: "::/0"}[version])

    def session_states(self) -> list[str]:
        """Return the state of each BGP session, as the router sees it."""
        assert self.router is not None
        families = self.router.show("show bgp summary").values()
        return [peer["state"] for family in families for peer in family["peers"].values()]

    def route_through(self, edges: list[EdgeAddresses]) -> None:
        """Let the router and the servers use these edge switches only, as routing protocols would."""
        spread_to_services(self.network[INTERNET], edges)
        self.servers_send_through(edges)

    def servers_send_through(self, edges: list[EdgeAddresses]) -> None:
        """Let the servers use these edge switches only."""
        spread_to_clients(list(self.servers.values()), edges)


def _next_hops(host: Namespace, prefix: str) -> set[IPAddress]:
    family = "-6" if ":" in prefix else "-4"
    routes = json.loads(host.run(["ip", "-j", family, "route", "show", prefix]).stdout or "[]")
    return {ip_address(hop["gateway"]) for route in routes for hop in route.get("nexthops", [route])}
