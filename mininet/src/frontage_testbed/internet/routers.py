# SPDX-License-Identifier: Apache-2.0
"""The running routers of the emulated Internet, and the paths that they give to clients."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..frr import Frr
from ..nodes import Namespace, Network, NodeError
from ..wan.addresses import SiteAddresses
from .addresses import client_gateway, link_address
from .plan import ADJACENCIES, CLIENTS, SITE_ASN, SYSTEMS, UPLINKS, neighbors_of
from .routing import configuration
from .topology import HOSTS, site_interface

MAX_HOPS = 8
SITES = {site_interface(uplink.site): uplink.site for uplink in UPLINKS}
"""Sites by the names of the interfaces that lead to them."""


class Routers:
    """The router of each system."""

    def __init__(self, network: Network, sites: Sequence[SiteAddresses], logs: Path) -> None:
        self._hosts: dict[int, Namespace] = {number: network[system.name] for number, system in SYSTEMS.items()}
        self._sites = sites
        upstreams = {uplink.upstream for uplink in UPLINKS}
        self._frr = {n: Frr(host, logs / f"frr-{host.name}", bfd=n in upstreams) for n, host in self._hosts.items()}

    def start(self) -> None:
        """Start all routers at once."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(self._start, SYSTEMS))

    def _start(self, number: int) -> None:
        uplinks = [(uplink, site) for uplink, site in zip(UPLINKS, self._sites, strict=True) if uplink.upstream == number]
        self._frr[number].start(configuration(SYSTEMS[number], uplinks))

    def stop(self) -> None:
        """Stop all routers."""
        for frr in self._frr.values():
            frr.stop()

    def path(self, client: str, address: str) -> tuple[list[int], int | None]:
        """Return the systems on the way from a client to an address by the routers' forwarding tables, and the site where it ends.

        Return None for the site if the way ends at a system without a route.
        """
        number = CLIENTS[client]
        systems = [number]
        while len(systems) < MAX_HOPS:
            out = self._next(number, address)
            if out in SITES:
                return systems, SITES[out]
            number = next((system.number for _, system, _ in neighbors_of(number) if system.name == out), 0)
            if number == 0:
                return systems, None
            systems.append(number)
        return systems, None

    def _next(self, number: int, address: str) -> str | None:
        """Return the interface by which a router sends to an address."""
        try:
            found = json.loads(self._hosts[number].run(["ip", "-6", "-j", "route", "get", address]).stdout)
        except NodeError:
            return None  # no route
        return str(found[0]["dev"]) if found else None

    def as_path(self, client: str, prefix: str) -> list[int]:
        """Return the AS path of the best route of a client's router, from its own system to that of the sites without repetitions."""
        number = CLIENTS[client]
        shown = self._frr[number].show(f"show bgp ipv6 unicast {prefix}")
        best = next((path for path in shown.get("paths", ()) if path.get("bestpath", {}).get("overall")), None)
        if best is None:
            return []
        numbers = [number, *(int(one) for one in best["aspath"]["string"].split())]
        return list(dict.fromkeys(numbers))

    def interface(self, site: int) -> tuple[Namespace, str]:
        """Return the upstream router of a site, and its interface to the site."""
        uplink = next(uplink for uplink in UPLINKS if uplink.site == site)
        return self._hosts[uplink.upstream], site_interface(site)


def upstream_of(as_path: Sequence[int]) -> int | None:
    """Return the site whose upstream is the last system before that of the sites."""
    if len(as_path) < 2 or as_path[-1] != SITE_ASN:
        return None
    return next((uplink.site for uplink in UPLINKS if uplink.upstream == as_path[-2]), None)


def trace(client: Namespace, address: str) -> list[int]:
    """Return the systems that answer a client's probes to an address with growing hop limits, as traceroute does.

    The probes end at the first system that forwards beyond its site.
    """
    systems = []
    for limit in range(1, MAX_HOPS + 1):
        # ping fails whenever the destination does not answer, so its exit status tells nothing.
        probe = client.spawn(["ping", "-6", "-n", "-c", "1", "-W", "1", "-t", str(limit), address], stdout=subprocess.PIPE)
        output, _ = probe.communicate()
        answered = re.search(r"^From (\S+) icmp_seq=1 Time exceeded", output.decode(), re.MULTILINE)
        if answered is None or (number := _owner(answered[1])) is None:
            break
        systems.append(number)
    return systems


def _owner(address: str) -> int | None:
    """Return the system whose router has an address."""
    for number, system in SYSTEMS.items():
        own = {link_address(i, first=ADJACENCIES[i].one == number) for i, _, _ in neighbors_of(number)}
        if system.client:
            own |= {client_gateway(system, host) for host in HOSTS}
        if address in own:
            return number
    return None
