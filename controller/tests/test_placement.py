# SPDX-License-Identifier: Apache-2.0
"""The placement engine: numbers of replicas, their sites, and incremental plans."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontage.mapping.placement.choose import Chooser
from frontage.mapping.placement.counts import replicate, solve
from frontage.mapping.placement.draw import priorities
from frontage.mapping.placement.engine import Engine
from frontage.mapping.placement.values import Demand, Flags, Parameters, PlacementError, Sites, record_key
from placement_instances import instance

PAPER = {"nu": 0.5, "weighed": 0}
rates = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=20)


def totals(pairs: list[tuple[int, int]]) -> tuple[np.typing.NDArray[np.float64], np.typing.NDArray[np.float64]]:
    return np.array([pair[0] for pair in pairs], float), np.array([pair[1] for pair in pairs], float)


def random_demand(seed: int, records: int, regions: int) -> Demand:
    random = np.random.default_rng(seed)
    reads = random.lognormal(0, 1, (records, regions)) * (random.random((records, regions)) < 0.6)
    return Demand.dense(random.integers(0, 2**64, records, np.uint64), reads, reads * random.uniform(0, 2, (records, 1)))


def sites_of(seed: int, number: int, regions: int, capacity: float) -> Sites:
    random = np.random.default_rng(seed)
    return Sites.of(np.full(number, capacity / number), random.uniform(2e3, 2e5, (regions, number)))


def engine(demand: Demand, sites: Sites, parameters: Parameters) -> Engine:
    found = Engine(sites, parameters)
    found.observe(demand)
    found.plan()
    return found


@given(rates, st.floats(0, 1e5), st.integers(1, 4), st.integers(0, 8), st.floats(0.1, 10))
def test_counts_are_between_f_and_m_and_fit(
    pairs: list[tuple[int, int]], capacity: float, least: int, room: int, cost: float
) -> None:
    reads, writes = totals(pairs)
    parameters = Parameters(min_replicas=least, write_cost=cost, mu=0.7)
    found = replicate(reads, writes, capacity, least + room, parameters)
    assert ((found.counts >= least) & (found.counts <= least + room)).all()
    assert (found.counts[(writes == 0) & (reads > 0)] == least + room).all()
    assert (found.counts[reads == 0] == least).all()
    assert found.load.updates == pytest.approx(cost * float(found.counts @ writes))
    if found.load.shortfall:
        counted = (reads > 0) & (writes > 0)
        assert (found.counts[counted] == least).all() or found.load.shortfall < 1e-9 * found.load.budget


@given(rates, st.floats(1, 1e5))
def test_beta_is_the_largest_that_fits(pairs: list[tuple[int, int]], capacity: float) -> None:
    reads, writes = totals(pairs)
    parameters = Parameters(min_replicas=2, mu=1.0)
    found = replicate(reads, writes, capacity, 9, parameters)
    counted = (reads > 0) & (writes > 0)
    ratio, weight = reads[counted] / writes[counted], writes[counted]
    if found.beta == 0:
        assert reads.sum() + 2 * writes.sum() >= capacity * (1 - 1e-9)
        return
    if found.beta == math.inf:
        assert reads.sum() + 9 * weight.sum() + 2 * writes[~counted].sum() <= capacity * (1 + 1e-9) or not len(ratio)
        return
    # With a slightly larger beta some record has one more replica, which exceeds the budget.
    above = np.floor(np.clip(2 + np.nextafter(found.beta, math.inf) * (1 + 1e-12) * ratio, 2, 9))
    assert reads.sum() + above @ weight + 2 * writes[reads == 0].sum() >= capacity * (1 - 1e-9)


def test_beta_solves_equation_1_for_divisible_replicas() -> None:
    random = np.random.default_rng(1)
    ratio, weight = random.lognormal(0, 2, 500), random.lognormal(0, 1, 500)
    for spare in (0.01, 10.0, 1000.0, 20 * weight.sum() * 0.999):
        beta = solve(ratio, weight, 20, spare)
        assert np.minimum(beta * ratio, 20) @ weight == pytest.approx(spare, rel=1e-12)
    assert solve(ratio, weight, 20, 20 * weight.sum() * 1.001) == math.inf
    assert solve(ratio, weight, 20, -1.0) == 0.0


def test_costlier_writes_leave_fewer_replicas() -> None:
    reads, writes = np.array([100.0, 50.0]), np.array([10.0, 10.0])
    light = replicate(reads, writes, 400.0, 20, Parameters())
    heavy = replicate(reads, writes, 400.0, 20, Parameters(write_cost=2.0))
    assert light.counts.tolist() > heavy.counts.tolist()
    assert light.load.shortfall == heavy.load.shortfall == 0


def test_capacity_below_demand_gives_f_replicas_and_shortfall() -> None:
    demand = random_demand(1, 30, 5)
    found = Engine(sites_of(1, 8, 5, 10.0), Parameters())
    found.observe(demand)
    plan = found.plan()
    assert plan.beta == 0.0
    assert plan.load.shortfall == pytest.approx(plan.load.reads + plan.load.updates - 7.0)
    assert (found.masks(demand.keys).sum(axis=1) == 3).all()


@pytest.mark.parametrize("given", [{}, PAPER, {"nu": 0.0}, {"nu": 0.5}, {"weighed": 3}])
def test_replicas_are_at_distinct_usable_sites(given: dict[str, float]) -> None:
    demand, sites = random_demand(2, 200, 12), sites_of(2, 15, 12, 20_000.0)
    sites.capacity[4] = 0.0
    found = engine(demand, sites, Parameters(**given))  # type: ignore[arg-type]
    masks = found.masks(demand.keys)
    assert (masks.sum(axis=1) == found.counts).all()
    assert not masks[:, 4].any()
    choice = found.choice(np.arange(200))
    assert not (choice.local & choice.drawn).any()
    if not given.get("nu", 1):
        assert not choice.local[found.counts < 14].any()


def test_half_of_replicas_goes_to_closest_sites_of_top_regions() -> None:
    # Regions 0, 1, 2 in the order of demand; 0 and 1 have the same closest site, so 2 is next.
    rtts = [[1e3, 5e4, 6e4, 7e4], [2e3, 4e3, 6e4, 7e4], [9e4, 9e4, 9e4, 3e3]]
    demand = Demand.of({"a": {0: (30.0, 1.0), 1: (20.0, 1.0), 2: (10.0, 1.0)}})
    here = Parameters(min_replicas=2, max_replicas=2, nu=1.0, weighed=0)
    assert engine(demand, Sites.of([1e6] * 4, rtts), here).masks(demand.keys).tolist() == [[True, False, False, True]]
    # Load latency counts as distance.
    loaded = Sites.of([1e6] * 4, rtts, [6e4, 0, 0, 0])
    assert engine(demand, loaded, here).masks(demand.keys).tolist() == [[False, True, False, True]]


def test_weighing_regions_is_never_worse_than_closest_sites() -> None:
    better = 0
    for seed in range(30):
        here = instance(seed)
        means = []
        for weighed in (0, 16):
            found = engine(here.demand, here.sites, Parameters(weighed=weighed, min_replicas=2))
            ways = np.where(found.masks(here.demand.keys)[:, None], here.sites.rtts, np.inf).min(axis=2)
            means.append((ways * here.matrices.requests).sum())
        better += means[1] < means[0]
        assert means[1] <= means[0] * 1.02
    assert better > 20


steps = st.lists(st.tuples(st.integers(0, 2**32), st.integers(1, 30), st.booleans()), min_size=1, max_size=5)


@settings(max_examples=50)
@given(steps, st.sampled_from([{}, PAPER]))
def test_incremental_plans_equal_full_plan(changes: list[tuple[int, int, bool]], given: dict[str, float]) -> None:
    every, sites, parameters = random_demand(3, 60, 7), sites_of(3, 9, 7, 1500.0), Parameters(**given)  # type: ignore[arg-type]
    stepped = engine(every, sites, parameters)
    reads, writes = every.reads.reshape(60, 7).copy(), every.writes.reshape(60, 7).copy()
    gone: Flags = np.zeros(60, np.bool_)
    installed = dict(zip(every.keys.tolist(), stepped.masks(every.keys).tolist(), strict=True))
    for seed, number, leave in changes:
        random = np.random.default_rng(seed)
        rows = random.choice(60, number, replace=False)
        if leave:
            stepped.forget(every.keys[rows])
            for key in every.keys[rows].tolist():
                installed.pop(key, None)
        else:
            reads[rows] = random.lognormal(0, 1, (number, 7))
            stepped.observe(Demand.dense(every.keys[rows], reads[rows], writes[rows]))
        gone[rows] = leave
        plan = stepped.plan()
        for key, before, after in zip(plan.keys.tolist(), plan.before.tolist(), plan.after.tolist(), strict=True):
            assert installed.get(key, [False] * 9) == before != after
            installed[key] = after
        keys = every.keys[~gone]
        whole = engine(Demand.dense(keys, reads[~gone], writes[~gone]), sites, parameters)
        assert stepped.masks(keys).tolist() == whole.masks(keys).tolist()
        assert installed == dict(zip(keys.tolist(), whole.masks(keys).tolist(), strict=True))


def test_placement_of_record_is_independent_of_other_records() -> None:
    demand, sites = random_demand(4, 700, 11), sites_of(4, 13, 11, 30_000.0)
    found = engine(demand, sites, Parameters())
    together = found.choice(np.arange(700)).chosen
    alone = np.concatenate([found.choice(np.array([row])).chosen for row in range(700)])
    assert (together == alone).all()
    assert (together == found.masks(demand.keys)).all()


def test_nothing_moves_without_a_change() -> None:
    demand = random_demand(5, 100, 7)
    found = engine(demand, sites_of(5, 9, 7, 1500.0), Parameters(max_replicas=4))
    assert found.plan().placed == 0
    found.observe(demand)
    assert not len(found.plan().keys)
    # Load latencies count for records placed from now on.
    busy = int(found.masks(demand.keys).sum(axis=0).argmax())
    found.measure(np.where(np.arange(9) == busy, 1e6, 0).astype(np.float32))
    assert found.plan().placed == 0
    found.again(demand.keys)
    moved = found.plan()
    assert moved.before[:, busy].any()
    assert not moved.after[:, busy].all()


def test_adopted_sites_stay() -> None:
    demand, sites = random_demand(6, 50, 7), sites_of(6, 9, 7, 1e6)
    parameters = Parameters(max_replicas=3)
    found = Engine(sites, parameters)
    found.observe(demand)
    found.plan()
    elsewhere = np.roll(found.masks(demand.keys), 1, axis=1)
    found.adopt(demand.keys, elsewhere)
    assert not len(found.plan().keys)
    assert (found.masks(demand.keys) == elsewhere).all()


def test_random_sites_are_even_and_stable() -> None:
    keys, ids = np.arange(100_000, dtype=np.uint64), np.arange(1, 21, dtype=np.uint64)
    order = priorities(keys, ids, 7).argsort(axis=1)
    share = np.bincount(order[:, :3].ravel(), minlength=20) / 300_000
    # 300,000 draws: a share's standard deviation is 0.0004.
    assert np.abs(share - 0.05).max() < 0.002
    fewer = priorities(keys, ids[:-1], 7)
    assert (fewer == priorities(keys, ids, 7)[:, :-1]).all()
    assert (priorities(keys, ids, 8) != priorities(keys, ids, 7)).all()
    assert priorities(np.array([1], np.uint64), np.array([2], np.uint64), 3).tolist() == [[PRIORITY]]


PRIORITY = 6901183182639842603
"""The priority of record 1 and site 2 with seed 3, on every machine."""


def test_random_sites_can_be_shared() -> None:
    """There is one placement per set of local sites and number of replicas; records without demand draw their own sites."""
    demand, sites = random_demand(6, 400, 7), sites_of(6, 20, 7, 1e6)
    unwanted = Demand.of({f"unwanted{i}": {} for i in range(50)})
    shared = []
    for alike in (False, True):
        found = Engine(sites, Parameters(max_replicas=6, nu=0.5, alike=alike))
        found.observe(demand)
        found.observe(unwanted)
        found.plan()
        near = Engine(sites, Parameters(max_replicas=6, nu=0.5))
        near.observe(demand)
        near.plan()
        local = near.choice(near.known(demand.keys)).local
        masks = found.masks(demand.keys)
        assert (masks & local == local).all()
        assert (masks.sum(axis=1) == found.counts[found.known(demand.keys)]).all()
        halves = len(np.unique(np.column_stack([local, masks.sum(axis=1)]), axis=0))
        shared.append(len(np.unique(masks, axis=0)) <= halves)
        assert len(np.unique(found.masks(unwanted.keys), axis=0)) > 25
    assert shared == [False, True]


def test_unknown_regions_count_as_load() -> None:
    rtts = [[1e3, 2e3, 3e3, 4e3], [math.inf] * 4]
    demand = Demand.of({"a": {0: (5.0, 1.0), 1: (9.0, 0.0), 7: (2.0, 0.0)}, "b": {9: (1.0, 1.0)}})
    found = Engine(Sites.of([1e3] * 4, rtts), Parameters(max_replicas=3))
    found.observe(demand)
    found.plan()
    assert (found.findings.unknown_regions, found.findings.unreachable) == (2, {1})
    assert found.reads.tolist() == [16.0, 1.0]
    assert (found.masks(demand.keys).sum(axis=1) == 3).all()


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Parameters(mu=0.0), "mu"),
        (lambda: Parameters(mu=math.nan), "mu"),
        (lambda: Parameters(nu=1.5), "nu"),
        (lambda: Parameters(min_replicas=4, max_replicas=3), "at most max_replicas"),
        (lambda: Sites.of([1.0, 2.0], [[1.0]]), "shape"),
        (lambda: Sites.of([1.0, math.nan], [[1.0, 1.0]]), "capacity of site 2"),
        (lambda: Sites.of([1.0, 1.0], [[1.0, 1.0]], [0.0, -1.0]), "load_latency of site 2"),
        (lambda: Sites.of([1.0, 1.0], [[1.0, math.nan]]), "region 0 to site 2"),
        (lambda: Sites.of([1.0, 1.0], [[1.0, 1.0]], ids=[1, 1]), "distinct"),
        (lambda: Demand.of({"a": {0: (-1.0, 0.0)}}), "reads of record .* from region 0 is -1"),
        (lambda: Demand.of({"a": {3: (1.0, math.inf)}}), "writes of record .* from region 3 is inf"),
        (lambda: Demand.of({"a": {70_000: (1.0, 1.0)}}), "16-bit"),
        (lambda: Demand.dense(np.array([1, 1], np.uint64), [[1.0]] * 2, [[1.0]] * 2), "twice"),
        (lambda: Engine(Sites.of([1.0, 1.0], [[1.0, 1.0]]), Parameters()).plan(), "2 usable sites"),
        (lambda: Engine(Sites.of([1.0], [[1.0]]), Parameters()).masks(np.array([5], np.uint64)), "0x0000000000000005 is unknown"),
    ],
)
def test_invalid_input_is_named(make: object, what: str) -> None:
    with pytest.raises(PlacementError, match=what):
        make()  # type: ignore[operator]


def test_plan_without_demand() -> None:
    found = Engine(Sites.of([1.0] * 4, [[1e3] * 4]), Parameters())
    assert len(found.plan().keys) == 0
    demand = Demand.of({"a": {}, "b": {0: (0.0, 0.0)}})
    found.observe(demand)
    found.plan()
    assert (found.masks(demand.keys).sum(axis=1) == 3).all()
    assert Chooser(found.sites, found.parameters).closest[0] == 0
    assert record_key("a") == demand.keys[0]
