# SPDX-License-Identifier: Apache-2.0
"""When replicas are moved, what a move costs, and how it is explained to an operator."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontage.mapping.placement.engine import Engine
from frontage.mapping.placement.policy import Policy, Reconfigurer, moved
from frontage.mapping.placement.values import Demand, Flags, Parameters, PlacementError, Sites, record_key
from frontage.mapping.placement.why import Bound, Reason, explain

NEAR, FAR = 2e3, 1e5
RTTS = np.where(np.eye(6, dtype=bool), NEAR, FAR)
"""Each region has its own nearest site."""


def flags(*sites: int) -> Flags:
    return np.isin(np.arange(6), sites)[None]


def test_replica_reports_when_demand_has_moved_enough() -> None:
    before = np.array([[9.0, 1.0], [9.0, 1.0], [9.0, 1.0], [0.0, 0.0]])
    now = np.array([[1.0, 9.0], [1.0, 9.0], [8.5, 1.5], [1.0, 0.0]])
    assert Policy(requests=100).reports(np.array([99, 100, 1000, 100]), before, now).tolist() == [False, True, False, True]


def test_moved_is_share_from_other_regions() -> None:
    found = moved([[1, 1], [2, 0], [0, 0], [0, 0], [3, 1]], [[2, 2], [0, 1], [0, 0], [1, 0], [1, 3]])
    assert found.tolist() == [0.0, 1.0, 0.0, 1.0, 0.5]


def test_messages_of_the_papers_steps() -> None:
    # Two agreements among three controllers, 3 stops, 3 starts, and one transfer of the record's state.
    assert Policy().messages(flags(0, 1, 2), flags(1, 2, 3)).tolist() == [2 * 3 * 2 + 2 * 3 + 2 * 3 + 2]


def test_reconfiguration_waits_for_k_times_m_requests() -> None:
    policy = Policy(requests=1000, share=1.0)
    reconfigurer, key = Reconfigurer(policy), np.array([7], np.uint64)
    active, wanted = flags(0, 1, 2), flags(1, 2, 3)
    for requests, due in ((2999, False), (1, True), (2999, False), (1, True)):
        reconfigurer.count(key, np.array([requests]), np.array([0]))
        assert reconfigurer.decide(key, active, wanted).tolist() == [due]
    assert reconfigurer.overhead.reconfigurations == 2
    reconfigurer.count(key, np.array([10_000]), np.array([0]))
    assert not reconfigurer.decide(key, active, active).any()
    # A removed record that returns starts at zero.
    reconfigurer.forget(key)
    assert not reconfigurer.decide(key, active, wanted).any()


epochs = st.lists(st.tuples(st.integers(0, 2**32), st.integers(0, 5000)), min_size=1, max_size=20)


@given(epochs, st.integers(30, 1000), st.sampled_from([0.036, 0.1, 0.5]))
def test_overhead_is_bounded_whatever_is_wanted(steps: list[tuple[int, int]], requests: int, share: float) -> None:
    if share <= 1 / requests:
        return
    policy = Policy(requests=requests, share=share)
    reconfigurer, keys = Reconfigurer(policy), np.arange(5, dtype=np.uint64)
    active = np.repeat(flags(0, 1, 2), 5, axis=0)
    served = np.zeros(5, np.int64)
    for seed, most in steps:
        random = np.random.default_rng(seed)
        came = random.integers(0, most + 1, 5)
        served += came
        # The largest possible number of reports.
        reports = served // requests
        served -= reports * requests
        reconfigurer.count(keys, came, reports)
        wanted = np.argsort(random.random((5, 6)), axis=1) < random.integers(3, 7, (5, 1))
        due = reconfigurer.decide(keys, active, wanted)
        active[due] = wanted[due]
        overhead = reconfigurer.overhead
        assert overhead.messages <= share * overhead.requests


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"requests": 0}, "requests"),
        ({"moved": math.nan}, "moved"),
        ({"share": 0.001}, "share"),
        ({"controllers": 0}, "controllers"),
    ],
)
def test_invalid_policies_are_named(given: dict[str, float], what: str) -> None:
    with pytest.raises(PlacementError, match=what):
        Policy(**given)  # type: ignore[arg-type]


def test_placement_follows_demand_within_two_epochs_and_is_explained() -> None:
    key = np.array([record_key("shop")], np.uint64)
    engine = Engine(Sites.of([1e4] * 6, RTTS), Parameters(max_replicas=3))
    policy = Policy()
    reconfigurer = Reconfigurer(policy)
    active = flags(0, 1, 2)
    changed = []
    for epoch, regions in enumerate([(0, 1, 2)] * 3 + [(0, 4, 5)] * 4):
        engine.observe(Demand.of({"shop": {region: (10.0 + region, 1.0) for region in regions}}))
        engine.plan()
        reconfigurer.count(key, np.array([800]), np.array([2]))
        wanted = engine.masks(key)
        if epoch == 3:
            why = explain(engine, int(key[0]), active[0], reconfigurer)
            assert (why.added, why.removed) == ((5, 6), (2, 3))
            assert why.planned == ((1, Reason.LOCALITY), (5, Reason.LOCALITY), (6, Reason.LOCALITY))
            assert (why.replicas, why.bound, why.requests_missing) == (3, Bound.LEAST, 0)
            # Region 5 has most requests and is still served by a distant site; its share is 16 of 42.
            assert [region.region for region in why.regions] == [5, 4, 0]
            assert why.regions[0].share == pytest.approx(16 / 42)
            assert (why.regions[0].distance, why.regions[2].site, why.regions[2].distance) == (FAR, 1, NEAR)
        due = reconfigurer.decide(key, active, wanted)
        if due[0]:
            changed.append(epoch)
            active = wanted
    assert changed == [3]
    assert active.tolist() == flags(0, 4, 5).tolist()
    assert reconfigurer.overhead.share <= policy.share
    assert not explain(engine, int(key[0]), active[0], reconfigurer).added


def test_explanation_names_bound_of_replica_count() -> None:
    engine = Engine(Sites.of([86.0] * 6, RTTS), Parameters())
    demand = Demand.of(
        {
            "static": {0: (1.0, 0.0)},
            "unread": {1: (0.0, 1.0)},
            "popular": {0: (100.0, 0.1)},
            "mobile": {2: (1.0, 60.0)},
            "between": {3: (30.0, 10.0)},
        }
    )
    engine.observe(demand)
    engine.plan()
    nowhere = np.zeros(6, np.bool_)
    found = [explain(engine, int(key), nowhere, Reconfigurer(Policy())) for key in demand.keys.tolist()]
    assert [why.bound for why in found] == [Bound.NO_UPDATES, Bound.NO_READS, Bound.MOST, Bound.LEAST, Bound.RATIO]
    assert found[0].replicas == 6
    assert found[0].regions[0].site is None
    assert found[1].requests_missing > 0
    with pytest.raises(PlacementError, match="is unknown"):
        explain(engine, 1, nowhere, Reconfigurer(Policy()))
