# SPDX-License-Identifier: Apache-2.0
"""Small random placement problems, one per seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frontage.mapping.placement.counts import replicate
from frontage.mapping.placement.routing import Matrices
from frontage.mapping.placement.values import Demand, Parameters, Rows, Sites


@dataclass(frozen=True)
class Instance:
    demand: Demand
    sites: Sites
    parameters: Parameters

    @property
    def matrices(self) -> Matrices:
        return Matrices.of(self.demand, len(self.sites.rtts), self.parameters)

    @property
    def counts(self) -> Rows:
        reads = np.add.reduceat(self.demand.reads, self.demand.starts[:-1], dtype=float)
        writes = np.add.reduceat(self.demand.writes, self.demand.starts[:-1], dtype=float)
        found = replicate(reads, writes, float(self.sites.capacity.sum()), len(self.sites.ids), self.parameters)
        return found.counts.astype(np.int64)


def instance(seed: int, records: int | None = None) -> Instance:
    """Return a random instance with sites and regions on a plane.

    RTTs are 2 to 200 ms, by distance and detours. 30 to 95 % of a record's requests come from one region and those around it, the rest
    from everywhere. Rates are lognormal, with a median of one update per three reads. Sites differ in capacity; together they have
    room for 0 to 3 replicas beyond F at mu = 0.7.
    """
    random = np.random.default_rng(seed)
    records = int(random.integers(8, 13)) if records is None else records
    number, regions = int(random.integers(5, 9)), int(random.integers(6, 11))
    at, there = random.random((number, 2)), random.random((regions, 2))
    rtts = (2_000 + 150_000 * np.linalg.norm(there[:, None] - at, axis=2)) * (1 + 0.3 * random.random((regions, number)))
    share = np.empty((records, regions))
    for record in share:
        around = np.argsort(np.linalg.norm(there - there[random.integers(regions)], axis=1))
        locality, top = random.uniform(0.3, 0.95), max(1, regions // 4)
        record[around] = np.where(np.arange(regions) < top, locality / top, (1 - locality) / (regions - top))
        record *= random.uniform(0.5, 1.5, regions)
        record /= record.sum()
    reads, writes = random.lognormal(3, 1, records), random.lognormal(2, 1, records)
    parameters = Parameters(min_replicas=int(random.integers(2, 4)), seed=seed)
    replicas = random.uniform(parameters.min_replicas, parameters.min_replicas + 3)
    capacity = random.uniform(0.7, 1.3, number)
    capacity *= (reads.sum() + replicas * writes.sum()) / parameters.mu / capacity.sum()
    keys = random.integers(0, 2**64, records, np.uint64)
    return Instance(Demand.dense(keys, share * reads[:, None], share * writes[:, None]), Sites.of(capacity, rtts), parameters)
