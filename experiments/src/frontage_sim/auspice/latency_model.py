# SPDX-License-Identifier: Apache-2.0
"""A model of the round-trip times between PlanetLab nodes, fitted to a measured matrix.

The matrix contains 490 nodes, measured 18 times (Zhu, Liu, Niu, Li, Zhao, "Network latency estimation for personal devices: a matrix
completion approach", IEEE/ACM Transactions on Networking 25, 2017; its data are public). It does not name the nodes' locations, so only
statistics of it are used here: ``experiments/auspice/fit_latencies.py`` fits a `LatencyModel` to them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SITES = {1: 78, 2: 125, 3: 18, 4: 14, 5: 5, 6: 3, 9: 1}
"""Number of sites by their number of nodes. A site is a group of nodes in the matrix that are all within a millisecond of each other."""
NODES = sum(nodes * sites for nodes, sites in SITES.items())
CONTINENTS = {"north-america": 94, "europe": 104, "asia": 28, "oceania": 7, "south-america": 6}
"""Number of sites by continent. A continent is a cluster in the matrix, more than 90 ms from every other cluster. The five sites that are
clusters of their own are not counted."""
_EARTH_RADIUS = 6371.0
"""Kilometres."""
_MIN_RTT_PER_KM = 2 / 200_000
"""Round-trip time per km of straight fibre, in seconds."""


@dataclass(frozen=True)
class LatencyModel:
    """Parameters of the round-trip time between two sites. Times are in seconds, slopes in seconds per km of great-circle distance.

    The RTT is ``base`` plus the distance times a slope that depends on the two continents, scaled by the random deviation of the pair,
    plus the access latency of each site (its campus network and uplink).
    """

    base: float
    america: float
    """Slope within North America."""
    within: float
    """Slope within any other continent."""
    atlantic: float
    """Slope between North America and Europe."""
    far: float
    """Slope between all other continents. Paths from Europe to Asia led through America."""
    deviation: float
    """Standard deviation of the logarithm of a pair's scale."""
    access: float
    """Mean access latency of a site, which follows a gamma distribution."""
    shape: float
    """Shape of that distribution: the smaller it is, the fewer sites have most of the access latency."""


FITTED = LatencyModel(0.8e-3, 19.5e-6, 29.9e-6, 17.5e-6, 22.3e-6, 0.06, 3.2e-3, 0.32)
SAME_SITE = 0.00022, 0.59
"""RTT between nodes of the same site: its median in seconds, and the standard deviation of its logarithm."""


def between_sites(locations: Array, continent: npt.NDArray[np.str_], model: LatencyModel, rng: np.random.Generator) -> Array:
    """Return the symmetric matrix of RTTs in seconds between sites at ``locations`` (degrees north and east); 0 on the diagonal."""
    km = distances(locations)
    same = continent[:, None] == continent
    pair = np.sort(np.stack(np.broadcast_arrays(continent[:, None], continent)), axis=0)
    atlantic = (pair[0] == "europe") & (pair[1] == "north-america")
    inside = np.where(continent == "north-america", model.america, model.within)
    slope = np.where(same, inside, np.where(atlantic, model.atlantic, model.far))
    access = rng.gamma(model.shape, model.access / model.shape, len(locations))
    rtt: Array = np.maximum((model.base + slope * km) * _pair_scales(rng, len(locations), model.deviation), km * _MIN_RTT_PER_KM)
    rtt += access[:, None] + access
    np.fill_diagonal(rtt, 0.0)
    return rtt


def between_nodes(site: Ints, sites: Array, rng: np.random.Generator) -> Array:
    """Return the matrix of RTTs between nodes: ``site`` has the site of each node, ``sites`` the RTTs between sites."""
    median, deviation = SAME_SITE
    near = median * _pair_scales(rng, len(site), deviation)
    rtt: Array = np.where(site[:, None] == site, near, sites[np.ix_(site, site)])
    np.fill_diagonal(rtt, 0.0)
    return rtt


def distances(locations: Array) -> Array:
    """Return the great-circle distances in km between ``locations`` in degrees north and east."""
    north, east = np.radians(locations).T
    cosine = np.sin(north[:, None]) * np.sin(north) + np.cos(north[:, None]) * np.cos(north) * np.cos(east[:, None] - east)
    km: Array = _EARTH_RADIUS * np.arccos(np.clip(cosine, -1, 1))
    np.fill_diagonal(km, 0.0)
    return km


def _pair_scales(rng: np.random.Generator, number: int, deviation: float) -> Array:
    """Return a symmetric matrix of random factors with a log-normal distribution."""
    drawn = np.triu(rng.standard_normal((number, number)), 1)
    scales: Array = np.exp(deviation * (drawn + drawn.T))
    return scales
