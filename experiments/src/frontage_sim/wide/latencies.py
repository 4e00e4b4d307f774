# SPDX-License-Identifier: Apache-2.0
"""Round-trip times as PlanetLab's were: a model whose figures are fitted to a measured matrix of them.

The matrix is of 490 nodes, 18 times (Zhu, Liu, Niu, Li, Zhao, "Network latency estimation for personal devices: a matrix completion
approach", IEEE/ACM Transactions on Networking 25, 2017; its data are public). It names no places, so nothing of it is in here but
statistics, by which ``experiments/auspice/latencies.py`` has fitted `Model`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SITES = {1: 78, 2: 125, 3: 18, 4: 14, 5: 5, 6: 3, 9: 1}
"""How many sites have so many nodes: groups in the matrix of which all are within a millisecond of each other."""
NODES = sum(nodes * sites for nodes, sites in SITES.items())
CONTINENTS = {"north-america": 94, "europe": 104, "asia": 28, "oceania": 7, "south-america": 6}
"""How many of the sites: by the matrix's clusters, which are more than 90 ms from each other. Five more have a cluster of their own."""
_EARTH = 6371.0
"""Radius, km."""
_LEAST = 2 / 200_000
"""Seconds there and back for a km of straight fibre."""


@dataclass(frozen=True)
class Model:
    """Seconds; slopes are seconds a km of the great circle, there and back.

    Between two sites it takes ``base`` and the distance by the slope of where they are, both times a deviation of the pair, and what each
    of the sites has for itself, a campus and its access.
    """

    base: float
    america: float
    """Within North America."""
    within: float
    """Within another continent."""
    atlantic: float
    """Between North America and Europe."""
    far: float
    """Between other continents: from Europe to Asia paths went by America."""
    deviation: float
    """Standard deviation of the logarithm."""
    access: float
    """Mean of a site's own part, which is distributed as Gamma."""
    shape: float
    """Of that: the smaller, the fewer sites have most of it."""


FITTED = Model(0.8e-3, 19.5e-6, 29.9e-6, 17.5e-6, 22.3e-6, 0.06, 3.2e-3, 0.32)
SAME_SITE = 0.00022, 0.59
"""Median, s, and standard deviation of the logarithm, between nodes of one site."""


def between_sites(where: Array, continent: npt.NDArray[np.str_], model: Model, rng: np.random.Generator) -> Array:
    """Seconds, both ways alike, between points in degrees north and east; 0 to itself."""
    km = distances(where)
    same = continent[:, None] == continent
    pair = np.sort(np.stack(np.broadcast_arrays(continent[:, None], continent)), axis=0)
    atlantic = (pair[0] == "europe") & (pair[1] == "north-america")
    inside = np.where(continent == "north-america", model.america, model.within)
    slope = np.where(same, inside, np.where(atlantic, model.atlantic, model.far))
    access = rng.gamma(model.shape, model.access / model.shape, len(where))
    found: Array = np.maximum((model.base + slope * km) * _of_pairs(rng, len(where), model.deviation), km * _LEAST)
    found += access[:, None] + access
    np.fill_diagonal(found, 0.0)
    return found


def between_nodes(site: Ints, sites: Array, rng: np.random.Generator) -> Array:
    """The same between nodes that are at ``site``."""
    median, deviation = SAME_SITE
    near = median * _of_pairs(rng, len(site), deviation)
    found: Array = np.where(site[:, None] == site, near, sites[np.ix_(site, site)])
    np.fill_diagonal(found, 0.0)
    return found


def distances(where: Array) -> Array:
    """Great circles, km, between points in degrees north and east."""
    north, east = np.radians(where).T
    cosine = np.sin(north[:, None]) * np.sin(north) + np.cos(north[:, None]) * np.cos(north) * np.cos(east[:, None] - east)
    found: Array = _EARTH * np.arccos(np.clip(cosine, -1, 1))
    np.fill_diagonal(found, 0.0)
    return found


def _of_pairs(rng: np.random.Generator, number: int, deviation: float) -> Array:
    drawn = np.triu(rng.standard_normal((number, number)), 1)
    found: Array = np.exp(deviation * (drawn + drawn.T))
    return found
