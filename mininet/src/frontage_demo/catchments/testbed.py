# SPDX-License-Identifier: Apache-2.0
"""Sites of an Artemis service in the emulated Internet, whose routers learn the sites' prefixes by BGP."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Self

from frontage.naming import ServicePrefix
from frontage_demo.artemis.names import ZONE
from frontage_demo.artemis.site import Programs
from frontage_demo.artemis.siteconfig import DEPLOYMENT, SERVICE_ID
from frontage_demo.artemis.testbed import OBJECT, OBJECT_BYTES
from frontage_testbed.certificate import make_certificate
from frontage_testbed.frr import Frr
from frontage_testbed.internet.addresses import client_host, client_prefix, uplink_ports
from frontage_testbed.internet.plan import CLIENTS, SYSTEMS, UPLINKS
from frontage_testbed.internet.routers import Routers
from frontage_testbed.internet.topology import Internet, delays, speaker_host
from frontage_testbed.nodes import Namespace, Network, NodeError
from frontage_testbed.processes import end, udp_ports
from frontage_testbed.wan.addresses import INSTANCE, PORT, SERVER_PORT, TUNNEL_PORT, SiteAddresses
from frontage_testbed.wan.latency import Latencies
from frontage_testbed.wan.topology import replica_host
from frontage_testbed.wires import Wires

from .site import BgpSite

READY_TIMEOUT = 60.0
CHANGE_TIMEOUT = 120.0
"""Seconds for a change of catchments."""
HELD_OBJECT = "/3"
HELD_BYTES = 8_000_000
"""Size of a response that takes two minutes at `HELD_RATE`: longer than the events of a run, also on a busy machine."""
HELD_RATE = 500_000
"""Rate in bit/s of the link to a host that holds connections open."""
VISITOR = 1
"""The host of an access network that opens connections. The others hold them."""


class CatchmentTestbed:
    """The testbed, inside its context."""

    def __init__(self, programs: Programs, directory: Path) -> None:
        """`directory` must not exist."""
        self.programs = programs
        self.directory = directory
        self.latencies = Latencies.published()
        self.service_address = str(ServicePrefix.parse(INSTANCE).service_address(ZONE))
        self.sites = [SiteAddresses(one.site, one.location, uplink_ports(one)[1], 0) for one in UPLINKS]
        self.bgp_sites = {
            site.id: BgpSite(site, self.sites, uplink, self.service_address, programs, directory / site.name)
            for site, uplink in zip(self.sites, UPLINKS, strict=True)
        }
        self.network = Network(Internet(sites=self.sites))
        self._wires: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.directory.mkdir()
        (self.directory / "objects").mkdir()
        for path, size in ((OBJECT, OBJECT_BYTES), (HELD_OBJECT, HELD_BYTES)):
            (self.directory / "objects" / path.removeprefix("/")).write_bytes(b"." * size)
        make_certificate(self.directory, f"/CN={ZONE}", f"subjectAltName=DNS:{ZONE},DNS:*.{ZONE}")
        self.network.start()
        wires = Wires(self.programs.switch, self.programs.compiler, self.directory)
        links = delays(self.latencies)
        self._wires = wires.start(list(links), links, seed=1)
        self.routers = Routers(self.network, self.sites, self.directory)
        for site in self.sites:
            self.bgp_sites[site.id].speaker = Frr(self.network[speaker_host(site)], self.directory / f"frr-{site.name}")
        with ThreadPoolExecutor() as pool:
            started = [pool.submit(self.routers.start)]
            started += [pool.submit(site.speaker.start) for site in self.bgp_sites.values() if site.speaker is not None]
            for future in started:
                future.result()
        self._start_sites()
        return self

    def __exit__(self, *_error: object) -> None:
        for site in self.bgp_sites.values():
            site.kill()
            if site.speaker is not None:
                site.speaker.stop()
        self.routers.stop()
        end(self._wires)

    def _start_sites(self) -> None:
        for number, site in self.bgp_sites.items():
            site.start(self.mapping(), redundancy=1)
            site.start_servers(self.network[replica_host(self.sites[number - 1])])
        for site in self.bgp_sites.values():
            site.wait_until_installed()
        for addresses in self.sites:
            _wait(f"the servers of {addresses.name}", READY_TIMEOUT, partial(_listens, self.network[replica_host(addresses)]))

    def mapping(self, without: Collection[int] = ()) -> dict[str, object]:
        """Return the end-user mapping: each access network is a region, with the sites in the order of distance.

        Sites in `without` are left out.
        """
        regions = {client: SYSTEMS[number].client for client, number in CLIENTS.items()}
        choices = [
            {"deployment": DEPLOYMENT, "sites": [s for s in self.nearest(client) if s not in without], "regions": [region]}
            for client, region in regions.items()
        ]
        anywhere = [site.id for site in self.sites if site.id not in without]
        return {
            "clients": [
                {"prefix": client_prefix(SYSTEMS[CLIENTS[client]]), "region": region} for client, region in regions.items()
            ],
            "services": [{"id": SERVICE_ID, "deployment": DEPLOYMENT}],
            "mapping": [*choices, {"deployment": DEPLOYMENT, "sites": anywhere, "regions": [0]}],
        }

    def nearest(self, client: str) -> list[int]:
        """Return the sites in order of their distance from a client by the latency matrix."""
        location = SYSTEMS[CLIENTS[client]].location
        ids = {site.location: site.id for site in self.sites}
        return [ids[at] for at in self.latencies.by_distance(location, ids)]

    def remap(self, dead: Collection[int], redundancy: int, avoiding: Collection[int] = ()) -> None:
        """Give every site that is not dead a new mapping, which leads to no site in `dead` or `avoiding`, and wait until it has it."""
        for number, site in self.bgp_sites.items():
            if number not in dead:
                site.install_mapping(self.mapping({*dead, *avoiding}), redundancy)

    def client(self, name: str) -> Namespace:
        """Return a client's host that opens connections."""
        return self.host(name, VISITOR)

    def host(self, name: str, number: int) -> Namespace:
        """Return one of the hosts of a client's access network."""
        host: Namespace = self.network[client_host(SYSTEMS[CLIENTS[name]], number)]
        return host

    def limit(self, name: str, number: int, rate: int | None) -> None:
        """Limit the link to one of a client's hosts to a rate in bit/s, so that downloads last, or end the limit."""
        system = SYSTEMS[CLIENTS[name]]
        verb = "del" if rate is None else "replace"
        limits = [] if rate is None else ["tbf", "rate", f"{rate}bit", "burst", "6056", "limit", "100000"]
        self.network[system.name].run(["tc", "qdisc", verb, "dev", client_host(system, number), "root", *limits])

    def catchments(self) -> dict[str, int | None]:
        """Return the site that packets of each client to the service address reach, by the routers' forwarding tables."""
        return {client: self.routers.path(client, self.service_address)[1] for client in CLIENTS}

    def wait_until_converged(self, catchments: Mapping[str, int]) -> None:
        """Wait until the catchments are as given, and all clients have routes to all sites."""
        self.seconds_until(catchments)
        _wait("routes to all sites", CHANGE_TIMEOUT, self._reaches_all_sites)

    def _reaches_all_sites(self) -> bool:
        return all(self.routers.path(client, site.replica)[1] == site.id for client in CLIENTS for site in self.sites)

    def seconds_until(self, wanted: Mapping[str, int]) -> float:
        """Wait until the catchments are `wanted`, and return how long it took."""
        began = time.monotonic()
        try:
            _wait(f"catchments {dict(wanted)}", CHANGE_TIMEOUT, lambda: self.catchments() == wanted)
        except NodeError as error:
            paths = {client: self.routers.path(client, self.service_address) for client in CLIENTS}
            raise NodeError(f"{error}; the paths are {paths}") from None
        return time.monotonic() - began

    def rtt(self, client: str, site: int) -> float:
        """Return the round-trip time in ms between a client and a site's replica, over the unicast routes."""
        output = self.client(client).run(["ping", "-6", "-n", "-q", "-c", "5", "-i", "0.05", self.sites[site - 1].replica]).stdout
        found = re.search(r"= ([0-9.]+)/", output)
        assert found is not None, output
        return float(found[1])


def _listens(replica: Namespace) -> bool:
    return {PORT, SERVER_PORT, TUNNEL_PORT} <= udp_ports(replica)


def _wait(what: str, seconds: float, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise NodeError(f"{what}: not within {seconds:g} s")
        time.sleep(0.02)
