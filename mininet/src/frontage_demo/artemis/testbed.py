# SPDX-License-Identifier: Apache-2.0
"""A testbed of clients, name servers and sites."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from frontage.naming import ServicePrefix
from frontage_testbed.certificate import make_certificate
from frontage_testbed.nodes import Namespace, Network, NodeError
from frontage_testbed.wan.addresses import (
    AUTHORITY_ADDRESS,
    INSTANCE,
    Host,
    SiteAddresses,
    regional_address,
    regional_prefix,
)
from frontage_testbed.wan.latency import Latencies
from frontage_testbed.wan.switch import Wan
from frontage_testbed.wan.topology import Internet, replica_host

from . import mappingstore
from .names import AUTHORITY_HOST, ZONE, regional_records, start_servers
from .scenarios import AUTHORITY, Scenario, anycast, regional
from .site import Programs, Site
from .siteconfig import DEPLOYMENT, SERVICE_ID

READY_TIMEOUT = 180.0
OBJECT = "/1"
OBJECT_BYTES = 1000
"""Size of the response to a query, which fits into a packet."""
LONG_OBJECT = "/2"
LONG_OBJECT_BYTES = 1_000_000
"""Size of a response that takes many round trips."""


class ArtemisTestbed:
    """A testbed whose service answers at its service address and all others, inside its context."""

    site_type: type[Site] = Site
    """The type of the sites."""
    topology_type: type[Internet] = Internet
    """The type of the network."""

    def __init__(
        self,
        scenario: Scenario,
        programs: Programs,
        directory: Path,
        *,
        seed: int = 1,
        loss: Mapping[tuple[str, str], float] | None = None,
        dispatched: bool = False,
        computed: bool = False,
        tcp: bool = False,
        placement: Mapping[str, object] | None = None,
    ) -> None:
        """`directory` must not exist; `loss` maps pairs of locations, in alphabetical order, to loss rates.

        With `dispatched`, dispatchers read the service's name; otherwise the switch decides by its address. With `computed`,
        the sites' controllers compute the mapping from the dispatchers' reports; otherwise this class writes it. A
        `placement`, that section of the controllers' configuration, makes them also place the service by its demand.
        With `tcp`, the service address is also a VIP of TCP, whose servers are not started here.
        """
        computed = computed or placement is not None
        self._computed = computed
        self.scenario = scenario
        self.programs = programs
        self.directory = directory
        self.latencies = Latencies.published()
        self.routes = anycast(self.latencies, scenario, seed)
        """Locations of anycast's sites, by the client's location."""
        self.regional = regional(self.latencies, scenario, self.routes)
        """The region, and the location of the site to which its prefix leads, by the client's location."""
        number = {location: index for index, location in enumerate(self.latencies.locations)}
        count = len(scenario.sites)
        self.sites = [SiteAddresses(i, location, i, count + i) for i, location in enumerate(scenario.sites, 1)]
        ports = iter(range(2 * count + 1, 128))
        self._clients = {
            client: Host(f"c{i}", location, f"2001:db8:c{number[location]:02x}::", next(ports))
            for i, (client, location) in enumerate(scenario.clients.items(), 1)
        }
        self._resolvers = {
            client: Host(f"r{i}", location, f"2001:db8:e{number[location]:02x}::", next(ports))
            for i, (client, location) in enumerate(scenario.clients.items(), 1)
        }
        self._authority = Host(AUTHORITY_HOST, AUTHORITY, AUTHORITY_ADDRESS.removesuffix("53"), next(ports))
        self.service_address = str(ServicePrefix.parse(INSTANCE).service_address(ZONE))
        self._site_processes = {
            site.location: self.site_type(
                site,
                self.sites,
                self.service_address,
                programs,
                directory / site.name,
                dispatched=dispatched or computed,
                computed=computed,
                tcp=tcp,
                placement=placement,
            )
            for site in self.sites
        }
        hosts = [*self._clients.values(), *self._resolvers.values(), self._authority]
        self._network = Network(self.topology_type(hosts=hosts, sites=self.sites))
        self.wan = Wan(
            switch=programs.switch,
            compiler=programs.compiler,
            directory=directory / "wan",
            latencies=self.latencies,
            hosts=hosts,
            sites=self.sites,
            seed=seed,
            loss=loss or {},
        )
        self._name_servers: Sequence[subprocess.Popen[bytes]] = ()
        self.startup: dict[str, float] = {}
        """Seconds for each step of the start-up."""

    def __enter__(self) -> ArtemisTestbed:
        self.directory.mkdir()
        (self.directory / "objects").mkdir()
        for path, size in ((OBJECT, OBJECT_BYTES), (LONG_OBJECT, LONG_OBJECT_BYTES)):
            (self.directory / "objects" / path.removeprefix("/")).write_bytes(b"." * size)
        make_certificate(self.directory, f"/CN={ZONE}", f"subjectAltName=DNS:{ZONE},DNS:*.{ZONE}")
        began = time.monotonic()
        for step, do in (
            ("hosts and links", self._network.start),
            ("the network's switch", self.wan.start),
            ("sites", self._start_sites),
            ("name servers", self._start_names),
        ):
            do()
            self.startup[step] = time.monotonic() - began
            began = time.monotonic()
        self.wan.route_anycast(
            self.routes, {place: (regional_prefix(region), site) for place, (region, site) in self.regional.items()}
        )
        return self

    def __exit__(self, *_error: object) -> None:
        # Hosts and links end with the sandbox's namespaces, each of which has only one testbed.
        for process in self._name_servers:
            process.kill()
        for site in self._site_processes.values():
            site.kill()
        self.wan.stop()

    def _start_sites(self) -> None:
        for site in self._site_processes.values():
            site.start(self.mapping(), redundancy=1)
        for site in self._site_processes.values():
            site.start_hosts(self._network)
        for site in self._site_processes.values():
            site.wait_until_installed()
        self._wait_until_listening()
        self._wait_until_dispatched()

    def mapping(self, without: Collection[str] = ()) -> dict[str, object]:
        """Return the end-user mapping: every client's location is a region, with the sites in the order of distance.

        Sites at the locations `without` are left out.
        """
        regions = {location: number for number, location in enumerate(self.scenario.clients.values(), 1)}
        ids = {site.location: site.id for site in self.sites if site.location not in without}
        choices = []
        for location, region in regions.items():
            alive = [ids[near] for near in self.nearest(location) if near in ids]
            choices.append({"deployment": DEPLOYMENT, "sites": alive, "regions": [region]})
        anywhere = {"deployment": DEPLOYMENT, "sites": list(ids.values()), "regions": [0]}
        services = [{"id": SERVICE_ID, "deployment": DEPLOYMENT}]
        clients = [{"prefix": f"{h.prefix}/64", "region": regions[h.location]} for h in self._clients.values()]
        return {"clients": clients, "services": services, "mapping": [*choices, anywhere]}

    def _wait_until_listening(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT
        for site in self._site_processes.values():
            while not site.is_listening(self._network):
                if time.monotonic() > deadline or site.ended:
                    raise NodeError(f"the servers of site {site.addresses.name} do not listen; logs are in {self.directory}")
                time.sleep(0.05)

    def _wait_until_dispatched(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT
        for site in self._site_processes.values():
            while not (self._is_computed(site) if self._computed else _answers(site, self.mapping())):
                if time.monotonic() > deadline or site.ended:
                    name = site.addresses.name
                    raise NodeError(f"the dispatcher of site {name} has no replica; logs are in {self.directory}")
                time.sleep(0.1)

    def _start_names(self) -> None:
        best = {client: self.direct_address(self.best_site(client)) for client in self.scenario.clients}
        resolvers = list(self._resolvers.values())
        regions = {client: regional_address(self.regional[location][0]) for client, location in self.scenario.clients.items()}
        records = self._site_processes[self.sites[0].location].zone_records() + regional_records(regions)
        self._name_servers = start_servers(self._network, resolvers, self.directory / "names", best, records)

    def set_redundancy(self, degree: int) -> None:
        """Copy first flights to the best `degree` sites."""
        self.remap((), degree)

    def remap(self, without: Collection[str], redundancy: int) -> None:
        """Give every living site a new mapping, and wait until its switch has installed it."""
        living = [site for location, site in self._site_processes.items() if location not in without]
        for site in living:
            site.write(self.mapping(without), redundancy)
            site.update_dispatcher(self.mapping(without), redundancy)
        for site in living:
            site.apply()

    def client(self, name: str) -> Namespace:
        """Return a client's host."""
        host: Namespace = self._network[self._clients[name].name]
        return host

    def server(self, location: str) -> Namespace:
        """Return the host of the servers at a location."""
        host: Namespace = self._network[replica_host(self.site(location).addresses)]
        return host

    def resolver(self, client: str) -> str:
        """Return the address of a client's recursive name server."""
        return self._resolvers[client].address

    def site(self, location: str) -> Site:
        """Return the site at a location."""
        return self._site_processes[location]

    def rtts(self, client: str) -> list[mappingstore.Rtt]:
        """Return the sites' measurements of a client, if the controllers compute the mapping."""
        return mappingstore.rtts(self.directory, self._clients[client].address)

    def known(self, client: str) -> mappingstore.Known:
        """Return what the store knows of a client's network, if the controllers compute the mapping."""
        return mappingstore.known(self.directory, self._clients[client].address)

    def placed(self) -> mappingstore.Placed | None:
        """Return the service's placement by demand; None before the first one."""
        return mappingstore.placed(self.directory)

    def leader(self) -> str:
        """Return the location of the site whose controller computes the mapping."""
        number = mappingstore.leader(self.directory)
        return next(site.location for site in self.sites if site.id == number)

    def nearest(self, location: str) -> list[str]:
        """Return the locations of all sites in order of their distance from `location`."""
        return self.latencies.by_distance(location, self.scenario.sites)

    def best_site(self, client: str) -> SiteAddresses:
        """Return the site nearest to a client."""
        return self.site(self.nearest(self.scenario.clients[client])[0]).addresses

    @staticmethod
    def direct_address(site: SiteAddresses) -> str:
        """Return the address at which clients reach a site's plain server by unicast."""
        return site.replica

    def _is_computed(self, site: Site) -> bool:
        """Return whether the dispatcher's table has the service at every site."""
        try:
            version = mappingstore.version(self.directory, len(self.sites))
            return version is not None and site.table_version == version
        except OSError:
            return False


def _answers(site: Site, mapping: Mapping[str, object]) -> bool:
    """Return whether a site's dispatcher has the mapping and a replica."""
    try:
        site.update_dispatcher(mapping, redundancy=1)
        return site.has_replicas
    except OSError:
        return False
