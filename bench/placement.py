# SPDX-License-Identifier: Apache-2.0
"""The placement of 1,000,000 records at 100 sites by the demand of 100 regions: a full plan, and plans after changes of 1 %.

Times are core time of this process. The environment variable SEED selects other sites, demand and changes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

import numpy as np
import numpy.typing as npt

from frontage.mapping.placement.choose import Chooser
from frontage.mapping.placement.engine import Engine
from frontage.mapping.placement.values import Demand, Parameters, Sites
from processes import resident
from rows import Row, finish, row
from seed import SEED

RECORDS, REGIONS, SITES = 1_000_000, 100, 100
CHANGE = 0.01
RUNS = 5
BATCH = 50_000
"""Records per call of `observe`."""
SAMPLE = 2_000
"""Records whose mean latency is computed."""
MEAN_REPLICAS = 5.5
"""Mean number of replicas of updated records for which the sites have capacity."""
SPARSE_REGIONS = 20
"""Regions that request a record in the sparse workload."""
PAPER = Parameters(nu=0.5, weighed=0)
PAPER_PEER = "the same number of replicas, placed as by the paper's prototype: nu = 0.5, closest sites"

Floats = npt.NDArray[np.float32]


class Workload:
    """The workload of the paper's Table 1.

    Nine of ten records are devices: they are updated as often as read, and 75 % of their requests come from ten neighboring regions.
    The others are services: they get a third of all requests, almost no updates, and 80 % of their requests come from ten regions.
    An RTT is 2 to 270 ms, depending on distance and detours.
    """

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
        """Draw new demand for these records, each around a new region."""
        reads, writes = self.random.uniform(0.5, 1.5, (2, len(rows))).astype(np.float32)
        service = self.service[rows]
        # Services have as many reads as devices, on nine times fewer records.
        reads[service] *= 9 * self.random.pareto(2.0, int(service.sum())).astype(np.float32)
        writes[service] = reads[service] * np.float32(0.0003)
        share = self.shares(np.where(service, 0.8, 0.75).astype(np.float32))
        if not self.sparse:
            return Demand.dense(self.keys[rows], share * reads[:, None], share * writes[:, None])
        kept = np.argpartition(-share, SPARSE_REGIONS, axis=1)[:, :SPARSE_REGIONS]
        sparse = np.take_along_axis(share, kept, axis=1)
        sparse /= sparse.sum(axis=1, keepdims=True)
        starts = np.arange(len(rows) + 1, dtype=np.int64) * SPARSE_REGIONS
        regions = kept.astype(np.uint16).ravel()
        return Demand(self.keys[rows], starts, regions, (sparse * reads[:, None]).ravel(), (sparse * writes[:, None]).ravel())

    def shares(self, locality: Floats) -> Floats:
        top = REGIONS // 10
        share: Floats = np.repeat(((1 - locality) / (REGIONS - top))[:, None], REGIONS, axis=1)
        near = self.around[self.random.integers(0, REGIONS, len(locality)), :top]
        np.put_along_axis(share, near, (locality / top)[:, None], axis=1)
        share *= self.random.uniform(0.5, 1.5, share.shape).astype(np.float32)
        share /= share.sum(axis=1, keepdims=True)
        return share

    def sample(self) -> npt.NDArray[np.int64]:
        return self.random.choice(RECORDS, int(RECORDS * CHANGE), replace=False)


def latency(engine: Engine, parameters: Parameters) -> float:
    """Return the mean RTT in milliseconds from a request to the closest replica, if these parameters choose the sites.

    The mean is over requests for the first records that do not have a replica at every site.
    """
    rows = np.flatnonzero(engine.counts < SITES)[:SAMPLE]
    own_chooser, engine.chooser = engine.chooser, Chooser(engine.sites, parameters)
    chosen = engine.choice(rows).chosen
    engine.chooser = own_chooser
    regions, requests = engine.regional.most_first(rows, REGIONS)
    total = 0.0
    for mask, origins, counts in zip(chosen, regions, requests, strict=True):
        used = origins < REGIONS
        total += float(counts[used] @ engine.sites.rtts[origins[used]][:, mask].min(axis=1))
    return total / float(requests.sum()) / 1000


def measure_workload(seed: int, name: str, sparse: bool) -> Iterator[Row]:
    """Yield the rows of a workload; `name` is the suffix of their names."""
    workload = Workload(seed, sparse)
    sample = workload.demand(workload.sample())
    capacity = (float(sample.reads.sum()) + MEAN_REPLICAS * float(sample.writes.sum())) / CHANGE / 0.7
    sites = Sites.of(np.full(SITES, capacity / SITES), workload.rtts)
    engine = Engine(sites, Parameters())
    observing = 0.0
    for first in range(0, RECORDS, BATCH):
        demand = workload.demand(np.arange(first, first + BATCH))
        started = time.process_time()
        engine.observe(demand)
        observing += time.process_time() - started
    started = time.process_time()
    plan = engine.plan()
    planning = time.process_time() - started
    counts = engine.counts[engine.counts < SITES]
    yield from (
        row(f"placement{name}_observe", observing, "s"),
        row(f"placement{name}_plan", planning, "s"),
        row(f"placement{name}_memory_arrays", engine.nbytes / 1e6, "MB"),
        row(f"placement{name}_memory_process", resident("self") / 1e6, "MB"),
        row(f"placement{name}_replicas", float(counts.mean()), "replicas per record that is not at every site"),
        row(f"placement{name}_everywhere", 100 * (1 - len(counts) / RECORDS), "% of records"),
        row(f"placement{name}_utilization", 100 * (plan.load.reads + plan.load.updates) / capacity, "% of capacity"),
    )
    ours, theirs = latency(engine, Parameters()), latency(engine, PAPER)
    yield row(f"placement{name}_latency", ours, "ms", PAPER_PEER, theirs)
    runs = []
    for _ in range(RUNS):
        demand = workload.demand(workload.sample())
        started = time.process_time()
        engine.observe(demand)
        plan = engine.plan()
        runs.append((time.process_time() - started, plan.placed, len(plan.keys)))
    yield row(f"placement{name}_1_percent", 1000 * median(run[0] for run in runs), "ms")
    yield row(f"placement{name}_1_percent_placed", median(run[1] for run in runs), "records")
    yield row(f"placement{name}_1_percent_moved", median(run[2] for run in runs), "records")


def measure() -> list[Row]:
    return [entry for name, sparse in (("", False), ("_sparse", True)) for entry in measure_workload(SEED, name, sparse)]


if __name__ == "__main__":
    finish(measure)
