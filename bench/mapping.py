# SPDX-License-Identifier: Apache-2.0
"""The end-user mapping of 10,000 services, 100,000 client prefixes and 100 sites: full computation, changes of 1 %, and pushing.

Times are core time of this process. The environment variable SEED selects other RTTs, deployments and changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median

import numpy as np
import numpy.typing as npt

from frontage.mapping.compute.engine import Engine
from frontage.mapping.compute.orders import Margin
from frontage.mapping.compute.prefixes import Prefix
from frontage.mapping.compute.values import Changes, Measurements
from mapping_push import measure_push
from processes import resident
from rows import Row, finish, row
from seed import SEED

SERVICES, PREFIXES, SITES = 10_000, 100_000, 100
AREAS = 2_000
"""Metropolitan areas with clients."""
SETS = {"": 200, "_many_sets": 2_000}
"""Number of distinct sets of sites by suffix of the row names. Services use each with one or two copies of first flights."""
MARGIN = Margin(0.1, 1000.0)
CHANGE = 0.01
RUNS = 5

Wanted = tuple[list[int], int]


class Network:
    """Random sites and metropolitan areas on a plane, with the RTTs between them.

    An RTT is 2 ms plus 1.5 ms per unit of distance, times up to 1.3 for detours of the path and up to 1.03 for the prefix.
    """

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
        sites: list[int] = (self.random.choice(SITES, int(self.random.integers(2, 20)), replace=False) + 1).tolist()
        return sorted(sites)

    def services(self, names: list[str], draw: Callable[[], list[int]]) -> dict[str, Wanted]:
        return {name: (draw(), int(self.random.integers(1, 3))) for name in names}

    def known_set(self) -> list[int]:
        return self.sets[int(self.random.integers(len(self.sets)))]

    def rtts(self, areas: npt.NDArray[np.int64], sites: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        noise = 1 + 0.03 * self.random.random(len(areas))
        rtts: npt.NDArray[np.float32] = (self.base[areas, sites] * noise).astype(np.float32)
        return rtts

    def measure(self, rows: npt.NDArray[np.int64], areas: npt.NDArray[np.int64]) -> Measurements:
        """Return RTTs from these prefixes to all sites, as for clients in ``areas``."""
        number, site = np.repeat(np.arange(len(rows)), SITES), np.tile(np.arange(SITES), len(rows))
        return Measurements([self.prefixes[i] for i in rows.tolist()], number, site + 1, self.rtts(areas[number], site))

    def sample_prefixes(self) -> npt.NDArray[np.int64]:
        return self.random.choice(PREFIXES, int(PREFIXES * CHANGE), replace=False)

    def move_prefixes(self) -> Measurements:
        """Move 1 % of the prefixes to other areas and return their new RTTs."""
        rows = self.sample_prefixes()
        self.area[rows] = self.area[self.random.choice(PREFIXES, len(rows))]
        return self.measure(rows, self.area[rows])

    def remeasure(self) -> Measurements:
        """Measure 1 % of all RTTs again, of independently drawn prefixes and sites."""
        cells = self.random.choice(PREFIXES * SITES, int(PREFIXES * SITES * CHANGE), replace=False)
        rows, number = np.unique(cells // SITES, return_inverse=True)
        site = cells % SITES
        return Measurements([self.prefixes[i] for i in rows.tolist()], number, site + 1, self.rtts(self.area[rows][number], site))

    def reroute(self) -> Measurements:
        """Change the length of 1 % of the paths between areas and sites by a factor of 0.7 to 1.5, for all prefixes in the area."""
        paths = self.random.choice(AREAS * SITES, int(AREAS * SITES * CHANGE), replace=False)
        changed = np.zeros((AREAS, SITES), np.bool_)
        changed.ravel()[paths] = True
        self.base[changed] *= self.random.uniform(0.7, 1.5, len(paths))
        row, site = np.nonzero(changed[self.area])
        rows, number = np.unique(row, return_inverse=True)
        return Measurements([self.prefixes[i] for i in rows.tolist()], number, site + 1, self.rtts(self.area[row], site))

    def sample_services(self) -> list[str]:
        return [f"s{i}" for i in self.random.choice(SERVICES, int(SERVICES * CHANGE), replace=False).tolist()]


def timed(update: Callable[[], Changes]) -> tuple[float, Changes]:
    """Run an update; return its core time in milliseconds and its changes."""
    started = time.process_time()
    changes = update()
    return 1000 * (time.process_time() - started), changes


def compute_all(network: Network, engine: Engine, services: dict[str, Wanted]) -> tuple[float, Changes]:
    """Compute the mapping from scratch; return the core time in milliseconds and the changes."""
    rtts = network.measure(np.arange(PREFIXES), network.area)
    return timed(lambda: engine.update(rtts, services))


def measure_sets(seed: int, name: str, sets: int) -> Iterator[Row]:
    """Yield the rows for a number of distinct sets of sites; `name` is the suffix of their names."""
    network = Network(seed, sets)
    services = network.services([f"s{i}" for i in range(SERVICES)], network.known_set)
    engine = Engine(range(1, SITES + 1), MARGIN)
    full, changes = compute_all(network, engine, services)
    yield from (
        row(f"mapping{name}_full", full, "ms"),
        row(f"mapping{name}_memory_arrays", engine.nbytes / 1e6, "MB"),
        row(f"mapping{name}_memory_process", resident("self") / 1e6, "MB"),
        row(f"mapping{name}_deployments", len(engine.deployments), "sets of sites with their redundancy"),
        row(f"mapping{name}_regions", len(engine.partition.live), "regions"),
        row(f"mapping{name}_client_entries", len(changes.clients), "entries"),
        row(f"mapping{name}_choice_entries", sum(len(regions) for _, regions, _ in changes.mapping), "entries"),
    )
    kinds: dict[str, Callable[[], Changes]] = {
        "prefixes": lambda: engine.update(network.move_prefixes()),
        "paths": lambda: engine.update(network.reroute()),
        "rtts": lambda: engine.update(network.remeasure()),
        "services": lambda: engine.update(services=network.services(network.sample_services(), network.known_set)),
        "new_sets": lambda: engine.update(services=network.services(network.sample_services(), network.draw_set)),
    }
    for kind, update in kinds.items():
        runs = [timed(update) for _ in range(RUNS)]
        yield row(f"mapping{name}_1_percent_{kind}", median(duration for duration, _ in runs), "ms")
        yield row(f"mapping{name}_1_percent_{kind}_entries", median(len(changes) for _, changes in runs), "entries")
    if not name:
        yield from measure_push(engine, services.keys(), kinds)


def measure() -> list[Row]:
    return [entry for name, sets in SETS.items() for entry in measure_sets(SEED, name, sets)]


if __name__ == "__main__":
    finish(measure)
