# SPDX-License-Identifier: Apache-2.0
"""Measures set-up and query latency of clients by each method of finding a server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network
from pathlib import Path
from typing import Any

from frontage_testbed.wan.addresses import DNS_PORT, INSTANCE, PLAIN_ADDRESS

from . import names
from .scenarios import cache_plan
from .service import ServiceTestbed
from .testbed import OBJECT, ArtemisTestbed

HIT_RATE = 0.835
"""Share of names in the resolver's cache (Table 3, after Jung et al.)."""
TIMEOUT = 30.0
CACHED = "www"
"""Label of the name that is in every resolver's cache."""


@dataclass(frozen=True)
class Sample:
    """One connection with one query. Times are milliseconds."""

    client: str
    method: str
    """artemis, dns, anycast or regional."""
    redundancy: int
    """X, the number of sites that got the first flight."""
    hit: bool | None
    """With DNS and regional anycast: whether the name was in the resolver's cache."""
    resolution: float
    """Time for resolving the name."""
    handshake: float
    response: float
    """Time from the query to the first byte of the response."""
    site: str
    """The location of the site that answered."""

    @property
    def setup(self) -> float:
        """Connection set-up latency (section 5.1): the name and the handshake."""
        return self.resolution + self.handshake

    @property
    def query(self) -> float:
        """Query latency (section 5.1): set-up and one request."""
        return self.setup + self.response


class Failed(RuntimeError):
    """A client's request failed."""


BY_ARTEMIS = (names.ZONE, "--artemis", INSTANCE)
"""Host and options for the name's service address."""


def begin(testbed: ServiceTestbed, client: str, host: str, *options: str) -> subprocess.Popen[bytes]:
    """Start `frontage-get` in a client's network to fetch the object from a host."""
    command: list[str | Path] = [testbed.programs.client, f"https://{host}{OBJECT}", "--insecure", "--json", *options]
    return testbed.client(client).spawn(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def end(client: str, started: subprocess.Popen[bytes]) -> Mapping[str, Any]:
    """Return the client's report. Raises Failed."""
    output, errors = started.communicate(timeout=TIMEOUT)
    if started.returncode != 0:
        raise Failed(f"{client}: {started.args!r}: {output.decode()}{errors.decode()}")
    report: Mapping[str, Any] = json.loads(output)
    return report


def by_artemis(testbed: ServiceTestbed, client: str) -> Mapping[str, Any]:
    """Connect by the name's service address, and return the client's report."""
    return end(client, begin(testbed, client, *BY_ARTEMIS))


def by_dns(testbed: ArtemisTestbed, client: str, label: str, zone: str = names.ZONE) -> Mapping[str, Any]:
    """Connect by a name that the client's resolver resolves, and return the client's report."""
    options = ("--resolver", f"[{testbed.resolver(client)}]:{DNS_PORT}")
    return end(client, begin(testbed, client, names.name(client, label, zone), *options))


def by_anycast(testbed: ArtemisTestbed, client: str) -> Mapping[str, Any]:
    """Connect to an anycast address, and return the client's report."""
    return end(client, begin(testbed, client, f"[{PLAIN_ADDRESS}]"))


ZONES = {"dns": names.ZONE, "regional": names.REGIONAL_ZONE}
"""The zones of the methods for which the client's resolver resolves a name."""


def sample(
    testbed: ArtemisTestbed, client: str, method: str, report: Mapping[str, Any], redundancy: int = 1, hit: bool | None = None
) -> Sample:
    """Return the latencies of a client's report, with the site that answered."""
    seconds = report["seconds"]
    name, connect, first = (seconds[step] * 1e3 for step in ("name", "connect", "first_byte"))
    match method:
        case "artemis":
            site = site_of_cookie(testbed, report["preferred"])
        case "dns":
            site = next(s.location for s in testbed.sites if s.replica == _address(report["service"]))
        case "regional":
            _, site = testbed.regional[testbed.scenario.clients[client]]
        case _:
            site = testbed.routes[testbed.scenario.clients[client]]
    return Sample(client, method, redundancy, hit, name, connect - name, first - connect, site)


def _address(endpoint: str) -> str:
    return endpoint.rpartition(":")[0].strip("[]")


def site_of_cookie(testbed: ServiceTestbed, endpoint: str | None) -> str:
    """Return the location of the site whose cookie prefix has an endpoint. Raises Failed without an endpoint."""
    if endpoint is None:
        raise Failed("the replica sent no preferred address, so its site is unknown")
    address = IPv6Address(_address(endpoint))
    return next(s.location for s in testbed.sites if address in IPv6Network(s.cookie_prefix))


def measure(
    testbed: ArtemisTestbed, rounds: int, seed: int, methods: Sequence[str], report_progress: Callable[[str], None] = lambda _: None
) -> list[Sample]:
    """Measure every client in turn, `rounds` times by each method; names are in the resolvers' caches as planned."""
    clients = list(testbed.scenario.clients)
    plan = cache_plan(clients, rounds, HIT_RATE, seed)
    for client in clients:
        # Fill the caches of the resolvers, and the kernels' neighbor tables.
        for zone in ZONES.values():
            by_dns(testbed, client, CACHED, zone)
        by_anycast(testbed, client)
    samples = []
    for number in range(rounds):
        report_progress(f"round {number + 1} of {rounds}")
        for client in clients:
            for method in methods:
                hit = plan[client][number] if method in ZONES else None
                if method in ZONES:
                    report = by_dns(testbed, client, CACHED if hit else f"n{number}", ZONES[method])
                else:
                    report = (by_artemis if method == "artemis" else by_anycast)(testbed, client)
                samples.append(sample(testbed, client, method, report, hit=hit))
    return samples


def redundant(testbed: ArtemisTestbed, rounds: int, degrees: Sequence[int]) -> list[Sample]:
    """Measure Artemis with first flights copied to the best X sites, for each X in `degrees`."""
    samples = []
    for degree in degrees:
        testbed.set_redundancy(degree)
        for _ in range(rounds):
            for client in testbed.scenario.clients:
                samples.append(sample(testbed, client, "artemis", by_artemis(testbed, client), redundancy=degree))
    testbed.set_redundancy(1)
    return samples
