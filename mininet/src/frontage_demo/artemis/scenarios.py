# SPDX-License-Identifier: Apache-2.0
"""Locations of clients and sites: the deployments of the paper's evaluation, on the regions of the latency matrix.

The paper's clients are in 15 AWS regions, which the matrix contains in the same order. Its sites are in 11 unnamed
Google Cloud regions on 5 continents; here they are in AWS regions, too. Their choice keeps the paper's numbers of sites
and continents, and a mean round-trip time between a client and its best site near the published one. The published one
is the difference of query and set-up latency for DNS in Table 5.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frontage_testbed.wan.latency import Latencies

CLIENTS = {
    "Japan": "ap-northeast-1",
    "Korea": "ap-northeast-2",
    "India": "ap-south-1",
    "Singapore": "ap-southeast-1",
    "Australia": "ap-southeast-2",
    "Canada": "ca-central-1",
    "Germany": "eu-central-1",
    "Sweden": "eu-north-1",
    "Ireland": "eu-west-1",
    "United Kingdom": "eu-west-2",
    "France": "eu-west-3",
    "N. Virginia": "us-east-1",
    "Ohio": "us-east-2",
    "N. California": "us-west-1",
    "Oregon": "us-west-2",
}
"""The paper's clients in its order (footnote 8)."""

AUTHORITY = "us-east-1"
"""Place of the authoritative name server."""

REGIONS = {"ap": 1, "ca": 2, "us": 2, "eu": 3, "sa": 4}
"""Numbers of the regions of regional anycast, which are continents, by the beginning of a location's name."""

DRAWS = 5000
"""Number of random assignments, of which the one with the extra latency nearest to the published one is used."""


@dataclass(frozen=True)
class Published:
    """The paper's means in ms: Artemis, DNS, anycast (Table 5)."""

    setup: tuple[float, float, float]
    query: tuple[float, float, float]
    suboptimal: float
    """Share of clients that anycast leads away from their best site (Table 6)."""
    extra: float
    """Additional latency, as a mean over all clients in ms (Table 6)."""


@dataclass(frozen=True)
class Scenario:
    """A deployment: its sites and clients, and the paper's results."""

    name: str
    title: str
    sites: tuple[str, ...]
    published: Published
    clients: Mapping[str, str]
    """Locations by client name."""


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            "global-large",
            "Global Large",
            (
                *("ap-east-1", "ap-northeast-1", "ap-northeast-3", "ap-southeast-2", "ca-central-1", "eu-central-1"),
                *("eu-south-1", "eu-west-2", "sa-east-1", "us-east-2", "us-west-1"),
            ),
            Published((23.2, 38.3, 20.9), (41.0, 56.5, 40.8), 0.2, 1.78),
            CLIENTS,
        ),
        Scenario(
            "global-small",
            "Global Small",
            ("ap-south-1", "ap-southeast-2", "eu-central-1", "sa-east-1", "us-west-1"),
            Published((77.8, 55.1, 76.4), (113.4, 95.8, 151.6), 0.2, 41.08),
            CLIENTS,
        ),
        Scenario(
            "europe",
            "Regional Europe",
            ("eu-central-1", "eu-north-1", "eu-south-1", "eu-west-2", "eu-west-3"),
            Published((135.9, 140.6, 132.4), (260.9, 265.5, 263.7), 0.133, 6.00),
            CLIENTS,
        ),
        # The matrix has four US regions; Canada's, close to them, is the fifth.
        Scenario(
            "us",
            "Regional US",
            ("us-east-1", "us-east-2", "us-west-1", "us-west-2", "ca-central-1"),
            Published((94.6, 98.7, 90.8), (179.0, 183.7, 180.2), 0.067, 4.33),
            CLIENTS,
        ),
    )
}


def anycast(latencies: Latencies, scenario: Scenario, seed: int) -> dict[str, str]:
    """Return the site to which anycast routing leads each client's location.

    As many clients as published do not reach their best site. Random draws determine which ones and their sites, so that
    the extra latency is near the published one: BGP ignores latency, so any other site is possible.
    """
    rng = random.Random(f"anycast {scenario.name} {seed}")
    locations = list(scenario.clients.values())
    nearest = {location: latencies.by_distance(location, scenario.sites) for location in locations}
    best = {location: sites[0] for location, sites in nearest.items()}
    count = round(scenario.published.suboptimal * len(locations))
    if count == 0 or len(scenario.sites) == 1:
        return best

    def draw() -> dict[str, str]:
        return best | {location: rng.choice(nearest[location][1:]) for location in rng.sample(locations, count)}

    def miss(routes: Mapping[str, str]) -> float:
        return abs(extra(latencies, best, routes) - scenario.published.extra)

    return min((draw() for _ in range(DRAWS)), key=miss)


def regional(latencies: Latencies, scenario: Scenario, routes: Mapping[str, str]) -> dict[str, tuple[int, str]]:
    """Return the region of each client's location, and the site to which that region's anycast prefix leads it.

    The region is the client's continent. If that has no site, it is the continent of the nearest site. `routes` maps
    locations to the sites of global anycast. A route that stays in the region is the same with regional anycast. Any other
    leads to the nearest site of the region, so the comparison favors regional anycast.
    """
    sites: dict[int, list[str]] = {}
    for site in scenario.sites:
        sites.setdefault(region_of(site), []).append(site)
    led = {}
    for location, route in routes.items():
        own = region_of(location)
        region = own if own in sites else region_of(latencies.by_distance(location, scenario.sites)[0])
        led[location] = region, route if route in sites[region] else latencies.by_distance(location, sites[region])[0]
    return led


def region_of(location: str) -> int:
    """Return the number of a location's region."""
    return REGIONS[location.partition("-")[0]]


def extra(latencies: Latencies, best: Mapping[str, str], routes: Mapping[str, str]) -> float:
    """Return the mean over all locations of the milliseconds that a route adds to the best site's round-trip time."""
    return sum(latencies.rtt(p, routes[p]) - latencies.rtt(p, best[p]) for p in best) / len(best)


def cache_plan(clients: Sequence[str], rounds: int, hit_rate: float, seed: int) -> dict[str, list[bool]]:
    """Return for each client and round whether its name is cached; the total share is `hit_rate`, rounded."""
    total = rounds * len(clients)
    hits = [index < round(total * hit_rate) for index in range(total)]
    random.Random(f"names {seed}").shuffle(hits)
    return {client: hits[index * rounds : (index + 1) * rounds] for index, client in enumerate(clients)}
