"""Measures what a client waits for: connection set-up and query latency, by the ways of finding a server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network
from pathlib import Path
from typing import Any

from frontage_testbed.wan.addresses import DNS_PORT, PLAIN_ADDRESS

from . import names
from .scenarios import cache_plan
from .testbed import INSTANCE, OBJECT, ArtemisTestbed

HIT_RATE = 0.835
"""Share of names that are in the resolver's cache (Table 3, after Jung et al.)."""
TIMEOUT = 30.0
CACHED = "www"
"""The label of the name that every resolver has in its cache."""


@dataclass(frozen=True)
class Sample:
    """One connection with one query. Times are milliseconds."""

    client: str
    way: str
    """artemis, dns or anycast."""
    redundancy: int
    """X: how many sites the first flight went to."""
    hit: bool | None
    """With DNS: whether the name was in the resolver's cache."""
    resolution: float
    """What the name took."""
    handshake: float
    response: float
    """From the query to its answer."""
    site: str
    """The place of the site that answered."""

    @property
    def setup(self) -> float:
        """Connection set-up latency (section 5.1): the name and the handshake."""
        return self.resolution + self.handshake

    @property
    def query(self) -> float:
        """Query latency (section 5.1): set-up and one request."""
        return self.setup + self.response


class Failed(RuntimeError):
    """A client did not get its answer."""


BY_ARTEMIS = (names.ZONE, "--artemis", INSTANCE)
"""By the name's service address."""


def begin(testbed: ArtemisTestbed, client: str, host: str, *options: str) -> subprocess.Popen[bytes]:
    """Have `frontage-get` fetch the object from a host, in a client's network."""
    command: list[str | Path] = [testbed.programs.client, f"https://{host}{OBJECT}", "--insecure", "--json", *options]
    return testbed.client(client).spawn(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def end(client: str, started: subprocess.Popen[bytes]) -> Mapping[str, Any]:
    """What it reports. Raises Failed."""
    output, errors = started.communicate(timeout=TIMEOUT)
    if started.returncode != 0:
        raise Failed(f"{client}: {started.args!r}: {output.decode()}{errors.decode()}")
    report: Mapping[str, Any] = json.loads(output)
    return report


def by_artemis(testbed: ArtemisTestbed, client: str) -> Mapping[str, Any]:
    """By the name's service address."""
    return end(client, begin(testbed, client, *BY_ARTEMIS))


def by_dns(testbed: ArtemisTestbed, client: str, label: str) -> Mapping[str, Any]:
    """By a name of the client's region that the client's resolver is asked for."""
    options = ("--resolver", f"[{testbed.resolver(client)}]:{DNS_PORT}")
    return end(client, begin(testbed, client, names.name(client, label), *options))


def by_anycast(testbed: ArtemisTestbed, client: str) -> Mapping[str, Any]:
    """By an address to which the network leads."""
    return end(client, begin(testbed, client, f"[{PLAIN_ADDRESS}]"))


def sample(
    testbed: ArtemisTestbed, client: str, way: str, report: Mapping[str, Any], redundancy: int = 1, hit: bool | None = None
) -> Sample:
    """What a report says of latency, and which site it came from."""
    seconds = report["seconds"]
    name, connect, first = (seconds[step] * 1e3 for step in ("name", "connect", "first_byte"))
    match way:
        case "artemis":
            site = _of_cookie(testbed, report["preferred"])
        case "dns":
            site = next(s.place for s in testbed.sites if s.replica == _address(report["service"]))
        case _:
            site = testbed.routes[testbed.scenario.clients[client]]
    return Sample(client, way, redundancy, hit, name, connect - name, first - connect, site)


def _address(endpoint: str) -> str:
    return endpoint.rpartition(":")[0].strip("[]")


def _of_cookie(testbed: ArtemisTestbed, endpoint: str | None) -> str:
    if endpoint is None:
        raise Failed("a replica named no address of its own, so its site is not known")
    address = IPv6Address(_address(endpoint))
    return next(s.place for s in testbed.sites if address in IPv6Network(s.cookie_prefix))


def measure(
    testbed: ArtemisTestbed, rounds: int, seed: int, ways: Sequence[str], tell: Callable[[str], None] = lambda _: None
) -> list[Sample]:
    """Every client, one after the other, `rounds` times by each way. Names are in the resolvers' caches as planned."""
    clients = list(testbed.scenario.clients)
    plan = cache_plan(clients, rounds, HIT_RATE, seed)
    for client in clients:
        # The cached name, and whatever the kernels learn with a first packet.
        by_dns(testbed, client, CACHED)
        by_anycast(testbed, client)
    samples = []
    for number in range(rounds):
        tell(f"round {number + 1} of {rounds}")
        for client in clients:
            for way in ways:
                hit = plan[client][number] if way == "dns" else None
                if way == "dns":
                    report = by_dns(testbed, client, CACHED if hit else f"n{number}")
                else:
                    report = (by_artemis if way == "artemis" else by_anycast)(testbed, client)
                samples.append(sample(testbed, client, way, report, hit=hit))
    return samples


def redundant(testbed: ArtemisTestbed, rounds: int, degrees: Sequence[int]) -> list[Sample]:
    """Artemis with first flights copied to the best X sites, for several X."""
    samples = []
    for degree in degrees:
        testbed.set_redundancy(degree)
        for _ in range(rounds):
            for client in testbed.scenario.clients:
                samples.append(sample(testbed, client, "artemis", by_artemis(testbed, client), redundancy=degree))
    testbed.set_redundancy(1)
    return samples
