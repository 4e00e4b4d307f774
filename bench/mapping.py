# SPDX-License-Identifier: Apache-2.0
"""The end-user mapping of 10,000 services, 100,000 client prefixes and 100 sites: computed whole, after changes of 1 %, and pushed.

Times are of one core, from the process's own clock. SEED=2 in the environment gives other RTTs, deployments and changes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from statistics import median

import numpy as np
import numpy.typing as npt

from frontage.mapping.compute.engine import Engine
from frontage.mapping.compute.orders import Margin
from frontage.mapping.compute.prefixes import Prefix
from frontage.mapping.compute.values import Changes, Measurements
from mapping_doors import at_doors, resident
from rows import Row, finish, row

SERVICES, PREFIXES, SITES = 10_000, 100_000, 100
AREAS = 2_000
"""Metropolitan areas, in which clients are."""
SETS = {"": 200, "_many_sets": 2_000}
"""Distinct sets of sites among the services; each is used with one and with two copies of first flights."""
MARGIN = Margin(0.1, 1000.0)
CHANGE = 0.01
RUNS = 5

Wanted = tuple[list[int], int]


class World:
    """Sites and areas on a plane. The RTT of a path is 2 ms and 1.5 ms a unit of distance, up to 1.3 times for its detours, and up to
    1.03 times for the prefix."""

    def __init__(self, seed: int, sets: int):
        self.random = np.random.default_rng(seed)
        sites, areas = self.random.random((SITES, 2)) * 100, self.random.random((AREAS, 2)) * 100
        distance = np.linalg.norm(areas[:, None] - sites[None], axis=2)
        self.base = (2_000 + 1_500 * distance) * (1 + 0.3 * self.random.random((AREAS, SITES)))
        self.area = np.sort(self.random.integers(0, AREAS, PREFIXES))
        half = PREFIXES // 2
        self.prefixes = [Prefix(4, 0x0B000000 + (i << 8), 24) for i in range(half)]
        self.prefixes += [Prefix(6, 0x20010DB8 << 96 | i << 80, 48) for i in range(PREFIXES - half)]
        self.sets = [self.draw_set() for _ in range(sets)]

    def draw_set(self) -> list[int]:
        found: list[int] = (self.random.choice(SITES, int(self.random.integers(2, 20)), replace=False) + 1).tolist()
        return sorted(found)

    def services(self, names: list[str], draw: Callable[[], list[int]]) -> dict[str, Wanted]:
        return {name: (draw(), int(self.random.integers(1, 3))) for name in names}

    def known_set(self) -> list[int]:
        return self.sets[int(self.random.integers(len(self.sets)))]

    def rtts(self, areas: npt.NDArray[np.int64], sites: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        noise = 1 + 0.03 * self.random.random(len(areas))
        found: npt.NDArray[np.float32] = (self.base[areas, sites] * noise).astype(np.float32)
        return found

    def measure(self, rows: npt.NDArray[np.int64], areas: npt.NDArray[np.int64]) -> Measurements:
        """All sites' RTTs of these prefixes, as those of clients in ``areas``."""
        number, site = np.repeat(np.arange(len(rows)), SITES), np.tile(np.arange(SITES), len(rows))
        return Measurements([self.prefixes[i] for i in rows.tolist()], number, site + 1, self.rtts(areas[number], site))

    def some(self) -> npt.NDArray[np.int64]:
        return self.random.choice(PREFIXES, int(PREFIXES * CHANGE), replace=False)

    def moved(self) -> Measurements:
        """1 % of the prefixes are somewhere else."""
        rows = self.some()
        self.area[rows] = self.area[self.random.choice(PREFIXES, len(rows))]
        return self.measure(rows, self.area[rows])

    def renewed(self) -> Measurements:
        """1 % of all RTTs, of prefixes and sites drawn apart, measured again."""
        cells = self.random.choice(PREFIXES * SITES, int(PREFIXES * SITES * CHANGE), replace=False)
        rows, number = np.unique(cells // SITES, return_inverse=True)
        site = cells % SITES
        return Measurements([self.prefixes[i] for i in rows.tolist()], number, site + 1, self.rtts(self.area[rows][number], site))

    def rerouted(self) -> Measurements:
        """1 % of the paths between areas and sites are 0.7 to 1.5 times as long, for all prefixes in the area."""
        paths = self.random.choice(AREAS * SITES, int(AREAS * SITES * CHANGE), replace=False)
        changed = np.zeros((AREAS, SITES), np.bool_)
        changed.ravel()[paths] = True
        self.base[changed] *= self.random.uniform(0.7, 1.5, len(paths))
        row, site = np.nonzero(changed[self.area])
        rows, number = np.unique(row, return_inverse=True)
        return Measurements([self.prefixes[i] for i in rows.tolist()], number, site + 1, self.rtts(self.area[row], site))

    def some_services(self) -> list[str]:
        return [f"s{i}" for i in self.random.choice(SERVICES, int(SERVICES * CHANGE), replace=False).tolist()]


def timed(update: Callable[[], Changes]) -> tuple[float, Changes]:
    """Milliseconds of one core."""
    started = time.process_time()
    changes = update()
    return 1000 * (time.process_time() - started), changes


def first(world: World, engine: Engine, services: dict[str, Wanted]) -> tuple[float, Changes]:
    every = world.measure(np.arange(PREFIXES), world.area)
    return timed(lambda: engine.update(every, services))


def computed(seed: int, name: str, sets: int) -> Iterator[Row]:
    world = World(seed, sets)
    services = world.services([f"s{i}" for i in range(SERVICES)], world.known_set)
    engine = Engine(range(1, SITES + 1), MARGIN)
    whole, changes = first(world, engine, services)
    yield from (
        row(f"mapping{name}_full", whole, "ms"),
        row(f"mapping{name}_memory_arrays", engine.nbytes / 1e6, "MB"),
        row(f"mapping{name}_memory_process", resident("self") / 1e6, "MB"),
        row(f"mapping{name}_deployments", len(engine.deployments), "sets of sites with their redundancy"),
        row(f"mapping{name}_regions", len(engine.partition.live), "regions"),
        row(f"mapping{name}_client_entries", len(changes.clients), "entries"),
        row(f"mapping{name}_choice_entries", sum(len(regions) for _, regions, _ in changes.mapping), "entries"),
    )
    kinds: dict[str, Callable[[], Changes]] = {
        "prefixes": lambda: engine.update(world.moved()),
        "paths": lambda: engine.update(world.rerouted()),
        "rtts": lambda: engine.update(world.renewed()),
        "services": lambda: engine.update(services=world.services(world.some_services(), world.known_set)),
        "new_sets": lambda: engine.update(services=world.services(world.some_services(), world.draw_set)),
    }
    for kind, update in kinds.items():
        runs = [timed(update) for _ in range(RUNS)]
        yield row(f"mapping{name}_1_percent_{kind}", median(spent for spent, _ in runs), "ms")
        yield row(f"mapping{name}_1_percent_{kind}_entries", median(len(found) for _, found in runs), "entries")
    if not name:
        yield from at_doors(engine, services.keys(), kinds)


def measure() -> list[Row]:
    seed = int(os.environ.get("SEED", "1"))
    return [found for name, sets in SETS.items() for found in computed(seed, name, sets)]


if __name__ == "__main__":
    finish(measure)
