# SPDX-License-Identifier: Apache-2.0
"""The placement of 1,000,000 records at 100 sites by the demand of 100 regions: planned whole, and after changes of 1 %.

Times are of one core, from the process's own clock. SEED=2 in the environment gives other sites, demand and changes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from statistics import median

import numpy as np
import numpy.typing as npt

from frontage.mapping.placement.choose import Chooser
from frontage.mapping.placement.engine import Engine
from frontage.mapping.placement.values import Demand, Parameters, Sites
from mapping_doors import resident
from rows import Row, finish, row

RECORDS, REGIONS, SITES = 1_000_000, 100, 100
CHANGE = 0.01
RUNS = 5
BATCH = 50_000
"""Records that are observed at a time."""
SAMPLE = 2_000
"""Records whose mean latency is looked at."""
REPLICAS = 5.5
"""What records that are updated have on average, by the sites' capacity."""
SEEN = 20
"""Regions that a record of the sparse demand is asked for from."""
PAPER = Parameters(nu=0.5, weighed=0)

Floats = npt.NDArray[np.float32]


class World:
    """The paper's Table 1: nine of ten records are devices, as often updated as read, 75 % from the ten regions around one; the others
    are services, with a third of all reads, hardly updated, 80 % from so many. An RTT is 2 to 270 ms by distance and detours."""

    def __init__(self, seed: int, sparse: bool):
        self.random = np.random.default_rng(seed)
        self.sparse = sparse
        sites, regions = self.random.random((SITES, 2)), self.random.random((REGIONS, 2))
        distance = np.linalg.norm(regions[:, None] - sites, axis=2)
        self.rtts = ((2_000 + 150_000 * distance) * (1 + 0.3 * self.random.random((REGIONS, SITES)))).astype(np.float32)
        self.around = np.argsort(np.linalg.norm(regions[:, None] - regions, axis=2), axis=1)
        self.keys = self.random.permutation(np.arange(RECORDS, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
        self.service = self.random.random(RECORDS) < 0.1

    def demand(self, rows: npt.NDArray[np.int64]) -> Demand:
        """Drawn anew for these records, each in a region drawn anew."""
        reads, writes = self.random.uniform(0.5, 1.5, (2, len(rows))).astype(np.float32)
        service = self.service[rows]
        # Services have a third of the reads beside the devices' third, on nine times fewer records.
        reads[service] *= 9 * self.random.pareto(2.0, int(service.sum())).astype(np.float32)
        writes[service] = reads[service] * np.float32(0.0003)
        share = self.shares(np.where(service, 0.8, 0.75).astype(np.float32))
        if not self.sparse:
            return Demand.dense(self.keys[rows], share * reads[:, None], share * writes[:, None])
        kept = np.argpartition(-share, SEEN, axis=1)[:, :SEEN]
        seen = np.take_along_axis(share, kept, axis=1)
        seen /= seen.sum(axis=1, keepdims=True)
        starts = np.arange(len(rows) + 1, dtype=np.int64) * SEEN
        regions = kept.astype(np.uint16).ravel()
        return Demand(self.keys[rows], starts, regions, (seen * reads[:, None]).ravel(), (seen * writes[:, None]).ravel())

    def shares(self, locality: Floats) -> Floats:
        top = REGIONS // 10
        share: Floats = np.repeat(((1 - locality) / (REGIONS - top))[:, None], REGIONS, axis=1)
        near = self.around[self.random.integers(0, REGIONS, len(locality)), :top]
        np.put_along_axis(share, near, (locality / top)[:, None], axis=1)
        share *= self.random.uniform(0.5, 1.5, share.shape).astype(np.float32)
        share /= share.sum(axis=1, keepdims=True)
        return share

    def some(self) -> npt.NDArray[np.int64]:
        return self.random.choice(RECORDS, int(RECORDS * CHANGE), replace=False)


def latency(engine: Engine, parameters: Parameters) -> float:
    """Milliseconds by RTT from a request to the closest replica, on average over requests for some of the records that are not
    everywhere, placed by these parameters."""
    rows = np.flatnonzero(engine.counts < SITES)[:SAMPLE]
    held, engine.chooser = engine.chooser, Chooser(engine.sites, parameters)
    chosen = engine.choice(rows).chosen
    engine.chooser = held
    regions, requests = engine.regional.most_first(rows, REGIONS)
    total = 0.0
    for mask, where, asked in zip(chosen, regions, requests, strict=True):
        there = where < REGIONS
        total += float(asked[there] @ engine.sites.rtts[where[there]][:, mask].min(axis=1))
    return total / float(requests.sum()) / 1000


def computed(seed: int, name: str, sparse: bool) -> Iterator[Row]:
    world = World(seed, sparse)
    sample = world.demand(world.some())
    capacity = (float(sample.reads.sum()) + REPLICAS * float(sample.writes.sum())) / CHANGE / 0.7
    sites = Sites.of(np.full(SITES, capacity / SITES), world.rtts)
    engine = Engine(sites, Parameters())
    observing = 0.0
    for first in range(0, RECORDS, BATCH):
        demand = world.demand(np.arange(first, first + BATCH))
        started = time.process_time()
        engine.observe(demand)
        observing += time.process_time() - started
    started = time.process_time()
    plan = engine.plan()
    planning = time.process_time() - started
    counted = engine.counts[engine.counts < SITES]
    yield from (
        row(f"placement{name}_observe", observing, "s"),
        row(f"placement{name}_plan", planning, "s"),
        row(f"placement{name}_memory_arrays", engine.nbytes / 1e6, "MB"),
        row(f"placement{name}_memory_process", resident("self") / 1e6, "MB"),
        row(f"placement{name}_replicas", float(counted.mean()), "a record that is not everywhere"),
        row(f"placement{name}_everywhere", 100 * (1 - len(counted) / RECORDS), "% of records"),
        row(f"placement{name}_utilization", 100 * (plan.load.reads + plan.load.updates) / capacity, "% of capacity"),
    )
    ours, theirs = latency(engine, Parameters()), latency(engine, PAPER)
    yield row(f"placement{name}_latency", ours, "ms", "as many replicas by the paper's prototype: nu = 0.5, closest sites", theirs)
    runs = []
    for _ in range(RUNS):
        demand = world.demand(world.some())
        started = time.process_time()
        engine.observe(demand)
        plan = engine.plan()
        runs.append((time.process_time() - started, plan.placed, len(plan.keys)))
    yield row(f"placement{name}_1_percent", 1000 * median(run[0] for run in runs), "ms")
    yield row(f"placement{name}_1_percent_placed", median(run[1] for run in runs), "records")
    yield row(f"placement{name}_1_percent_moved", median(run[2] for run in runs), "records")


def measure() -> list[Row]:
    seed = int(os.environ.get("SEED", "1"))
    return [found for name, sparse in (("", False), ("_sparse", True)) for found in computed(seed, name, sparse)]


if __name__ == "__main__":
    finish(measure)
