"""What latencies are by distances alone, as if switches, servers and clients took no time."""

from __future__ import annotations

from collections.abc import Mapping

from frontage_testbed.wan.latency import Latencies

from .measure import HIT_RATE
from .scenarios import AUTHORITY, Scenario


def least(latencies: Latencies, scenario: Scenario, routes: Mapping[str, str]) -> dict[str, tuple[float, float]]:
    """Mean set-up and query latency over all clients by each way, milliseconds; `routes` is anycast's site by place.

    Artemis' first flight goes from the site where it came in to the best one, from where the answer comes straight;
    what is sent then goes straight there.
    """
    totals = dict.fromkeys(("artemis", "dns", "anycast"), (0.0, 0.0))
    for place in scenario.clients.values():
        best, entered = latencies.by_distance(place, scenario.sites)[0], routes[place]
        direct, anycast = latencies.rtt(place, best), latencies.rtt(place, entered)
        detour = direct if entered == best else (anycast + latencies.rtt(entered, best) + direct) / 2
        name = latencies.rtt(place, place) + (1 - HIT_RATE) * latencies.rtt(place, AUTHORITY)
        for way, setup, response in (
            ("artemis", detour, direct),
            ("dns", name + direct, direct),
            ("anycast", anycast, anycast),
        ):
            totals[way] = totals[way][0] + setup, totals[way][1] + setup + response
    count = len(scenario.clients)
    return {way: (setup / count, query / count) for way, (setup, query) in totals.items()}
