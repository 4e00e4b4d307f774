# SPDX-License-Identifier: Apache-2.0
"""Placement against the exact optimum on small instances: each is within 10 %."""

from __future__ import annotations

import os

import pytest

from frontage.mapping.placement.balance import settled
from frontage.mapping.placement.optimum import best_routing, optimum
from placement_instances import instance

INSTANCES = range(0, 100, 1 if "LONG" in os.environ else 5)
WITHIN = 1.1


@pytest.mark.parametrize("seed", INSTANCES)
def test_mean_latency_is_near_the_optimum_at_equal_cost(seed: int) -> None:
    here = instance(seed)
    best = optimum(here.matrices, here.counts, here.sites)
    assert best is not None, "invalid instance: no placement can serve the demand"
    chosen = settled(here.demand, here.sites, here.parameters).masks(here.demand.keys)
    assert chosen.sum(axis=1).tolist() == here.counts.tolist()
    assert best.chosen.sum(axis=1).tolist() == here.counts.tolist()
    latency = best_routing(here.matrices, chosen, here.sites)
    assert latency is not None, "the sites cannot serve the demand under the engine's placement"
    assert best.bound - 1e-6 <= latency <= WITHIN * best.bound
