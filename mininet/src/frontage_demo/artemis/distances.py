# SPDX-License-Identifier: Apache-2.0
"""Latencies from distances alone, as if switches, servers and clients took no time."""

from __future__ import annotations

from collections.abc import Mapping

from frontage_testbed.wan.latency import Latencies

from .measure import HIT_RATE
from .scenarios import AUTHORITY, Scenario, regional


def least(latencies: Latencies, scenario: Scenario, routes: Mapping[str, str]) -> dict[str, tuple[float, float]]:
    """Return mean set-up and query latency over all clients by each method, in ms; `routes` maps locations to anycast's sites.

    Artemis' first flight enters at anycast's site, which forwards it to the best one. The response and everything after it
    take the direct path.
    """
    totals = dict.fromkeys(("artemis", "dns", "anycast", "regional"), (0.0, 0.0))
    regions = regional(latencies, scenario, routes)
    for location in scenario.clients.values():
        best, entered = latencies.by_distance(location, scenario.sites)[0], routes[location]
        direct, anycast = latencies.rtt(location, best), latencies.rtt(location, entered)
        detour = direct if entered == best else (anycast + latencies.rtt(entered, best) + direct) / 2
        within = latencies.rtt(location, regions[location][1])
        name = latencies.rtt(location, location) + (1 - HIT_RATE) * latencies.rtt(location, AUTHORITY)
        for method, setup, response in (
            ("artemis", detour, direct),
            ("dns", name + direct, direct),
            ("anycast", anycast, anycast),
            ("regional", name + within, within),
        ):
            totals[method] = totals[method][0] + setup, totals[method][1] + setup + response
    count = len(scenario.clients)
    return {method: (setup / count, query / count) for method, (setup, query) in totals.items()}
