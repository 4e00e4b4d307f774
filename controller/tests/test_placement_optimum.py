"""Placement against the exact optimum on small instances; of the issue's 100, each within 10 %."""

from __future__ import annotations

import pytest

from frontage.mapping.placement.balance import settled
from frontage.mapping.placement.optimum import best_routing, optimum
from placement_world import world

INSTANCES = range(100)
WITHIN = 1.1


@pytest.mark.parametrize("seed", INSTANCES)
def test_mean_latency_is_near_the_optimum_at_equal_cost(seed: int) -> None:
    here = world(seed)
    best = optimum(here.matrices, here.counts, here.sites)
    assert best is not None, "no placement has room for the demand: the instance is none"
    chosen = settled(here.demand, here.sites, here.parameters).masks(here.demand.keys)
    assert chosen.sum(axis=1).tolist() == here.counts.tolist()
    assert best.chosen.sum(axis=1).tolist() == here.counts.tolist()
    latency = best_routing(here.matrices, chosen, here.sites)
    assert latency is not None, "the sites have no room for the demand as it is placed"
    assert best.bound - 1e-6 <= latency <= WITHIN * best.bound
