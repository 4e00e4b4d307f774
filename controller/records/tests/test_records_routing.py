# SPDX-License-Identifier: Apache-2.0
"""Request routing: latency estimates against RFC 6298, and routes from site to site."""

from __future__ import annotations

import math

import pytest

from frontage_records.latency import Estimation, Latency
from frontage_records.ring import Ring, partition
from frontage_records.routing import Question, Route, Router, Routing, Step

GUID = "films.example"


def router(rtts: dict[int, float], **routing: float) -> Router:
    made = Router(rtts, Routing(**routing))  # type: ignore[arg-type]
    for site, rtt in rtts.items():
        made.latency[site].pinged(rtt)
    return made


def asked(route: Route) -> Step:
    step = route.step()
    assert step is not None
    return step


def test_average_and_timeout_follow_rfc_6298() -> None:
    latency = Latency(Estimation(min_timeout=0.01))
    latency.pinged(0.1)
    assert (latency.average, latency.deviation, latency.timeout) == pytest.approx((0.1, 0.05, 0.3))
    latency.answered(0.2)
    # RTTVAR = 3/4 * 0.05 + 1/4 * 0.1; SRTT = 7/8 * 0.1 + 1/8 * 0.2
    assert (latency.deviation, latency.average) == pytest.approx((0.0625, 0.1125))
    assert latency.timeout == pytest.approx(0.1125 + 4 * 0.0625)


def test_timeouts_raise_estimate_up_to_bound_until_an_answer() -> None:
    latency = Latency(Estimation())
    latency.pinged(0.1)
    for factor in (2, 4, 8):
        latency.timed_out()
        assert latency.estimate == pytest.approx(0.1 * factor)
    for _ in range(20):
        latency.timed_out()
    assert latency.estimate == pytest.approx(0.1 * 64)
    assert latency.timeout == 10
    latency.answered(0.1)
    assert (latency.estimate, latency.timeout) == pytest.approx((0.1, 1.0))


def test_pings_revert_backoff_stepwise_and_old_delays_fade() -> None:
    latency = Latency(Estimation())
    latency.answered(0.8)
    latency.timed_out()
    latency.timed_out()
    seen = []
    for _ in range(40):
        latency.pinged(0.1)
        seen.append(latency.estimate)
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] == pytest.approx(0.1, rel=0.1)


def test_unmeasured_site_that_times_out_ranks_after_measured_ones() -> None:
    found = Router([1, 2])
    found.latency[1].timed_out()
    found.latency[2].pinged(0.9)
    assert found.nearest([1, 2]) == 2


def test_route_goes_to_nearest_controller_then_nearest_replica() -> None:
    sites = {site: site / 100 for site in range(1, 11)}
    found = router(sites)
    route = found.route(GUID, 0)
    step = asked(route)
    assert step.question is Question.ACTIVES
    assert step.site == min(Ring(sites, 3).controllers(partition(GUID)))
    route.on_answer(step, 0.02)
    route.on_replicas(step, (9, 4, 7), 0)
    step = asked(route)
    assert (step.site, step.question) == (4, Question.REQUEST)
    route.on_answer(step, 0.04)
    assert asked(found.route(GUID, 59)) == Step(4, Question.REQUEST, 1.0)
    assert asked(found.route(GUID, 60)).question is Question.ACTIVES


def test_slow_nearest_site_diverts_requests_to_next() -> None:
    found = router({1: 0.01, 2: 0.05})
    found.learn(GUID, (1, 2), 0)
    assert asked(found.route(GUID, 1)).site == 1
    while found.nearest((1, 2)) == 1:
        route = found.route(GUID, 1)
        route.on_answer(asked(route), 0.2)
    assert asked(found.route(GUID, 1)).site == 2


def test_failures_lead_to_next_nearest_then_to_controllers_again() -> None:
    found = router({1: 0.01, 2: 0.02, 3: 0.03, 4: 0.04}, controllers=2)
    found.learn(GUID, (1, 2), 0)
    route = found.route(GUID, 0)
    for site in (1, 2):
        step = asked(route)
        assert (step.site, step.question) == (site, Question.REQUEST)
        route.on_failure(step)
    live = [site for site in found.controllers(GUID) if site not in (1, 2)]
    step = asked(route) if live else None
    if step is not None:
        assert (step.site, step.question) == (live[0], Question.ACTIVES)
        route.on_replicas(step, (1, 2, 4), 0)
        assert asked(route).site == 4
    assert found.latency[1].estimate == pytest.approx(0.02)


def test_former_replica_is_not_backed_off() -> None:
    found = router({1: 0.01, 2: 0.02, 3: 0.03})
    found.learn(GUID, (1, 2), 0)
    route = found.route(GUID, 0)
    route.on_missing(asked(route))
    step = asked(route)
    assert step.question is Question.ACTIVES
    route.on_replicas(step, (1, 3), 0)
    assert asked(route).site == 3
    assert found.actives(GUID, 1) == (1, 3)
    assert found.latency[1].estimate == pytest.approx(0.01)


def test_every_route_ends() -> None:
    """Routes end whatever fails, even if controllers name the same dead sites repeatedly."""
    found = router(dict.fromkeys(range(1, 8), 0.01))
    route = found.route(GUID, 0)
    steps = 0
    while (step := route.step()) is not None:
        steps += 1
        if step.question is Question.ACTIVES:
            route.on_replicas(step, (6, 7), 0)
        else:
            route.on_failure(step)
    assert steps == 5  # two replicas, and each controller once


def test_missing_record_is_routed_to_its_controllers() -> None:
    found = router({1: 0.03, 2: 0.02, 3: 0.01, 4: 0.005, 5: 0.002})
    route = found.route(GUID, 0)
    route.on_replicas(asked(route), (), 0)
    assert asked(route).site in found.controllers(GUID)


def test_single_site_needs_no_controller() -> None:
    found = router({7: 0.01})
    route = found.route(GUID, 0)
    step = asked(route)
    assert (step.site, step.question) == (7, Question.REQUEST)
    route.on_failure(step)
    assert route.step() is None


def test_cache_is_bounded() -> None:
    found = router({1: 0.01, 2: 0.02}, entries=2)
    for guid in ("a", "b", "c"):
        found.learn(guid, (1,), 0)
        found.actives("a", 0)
    assert [found.actives(guid, 0) for guid in ("a", "b", "c")] == [(1,), (), (1,)]


@pytest.mark.parametrize("wrong", [{"gain": 0}, {"backoff": 1}, {"min_timeout": 20}, {"max_timeout": math.inf}, {"deviations": -1}])
def test_invalid_settings_are_rejected(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"."):
        Estimation(**wrong)
    with pytest.raises(ValueError, match="at least 1"):
        Routing(entries=0)
