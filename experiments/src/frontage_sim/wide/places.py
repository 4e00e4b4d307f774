"""Who is how far from whom: round-trip times between cities, by distances on the globe and a published matrix of latencies.

PlanetLab's latencies, with which the paper emulates, are not to be had any longer. The medians of CloudPing between 21 cloud regions
(`frontage_demo.artemis.latency`) say how latency grows with distance, and how much paths of one length differ: a straight line is
fitted to them, and a pair of cities has what the line says, times a deviation drawn from those that the matrix has from the line.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources
from itertools import combinations

import numpy as np
import numpy.typing as npt
from frontage_demo.artemis.latency import Latencies

Array = npt.NDArray[np.float64]

_EARTH = 6371.0
"""Radius, km."""
_LEAST = 2 / 200_000
"""Seconds there and back for a km of straight fibre."""
REGIONS = {
    "af-south-1": (-33.92, 18.42),
    "ap-east-1": (22.32, 114.17),
    "ap-northeast-1": (35.68, 139.69),
    "ap-northeast-2": (37.57, 126.98),
    "ap-northeast-3": (34.69, 135.50),
    "ap-south-1": (19.08, 72.88),
    "ap-southeast-1": (1.35, 103.82),
    "ap-southeast-2": (-33.87, 151.21),
    "ca-central-1": (45.50, -73.57),
    "eu-central-1": (50.11, 8.68),
    "eu-north-1": (59.33, 18.07),
    "eu-south-1": (45.46, 9.19),
    "eu-west-1": (53.35, -6.26),
    "eu-west-2": (51.51, -0.13),
    "eu-west-3": (48.86, 2.35),
    "me-south-1": (26.23, 50.59),
    "sa-east-1": (-23.55, -46.63),
    "us-east-1": (39.04, -77.49),
    "us-east-2": (39.96, -83.00),
    "us-west-1": (37.34, -121.89),
    "us-west-2": (45.84, -119.70),
}
"""Degrees north and east of the cities that the provider names."""


@dataclass(frozen=True)
class Places:
    """RTTs in seconds, kilometres."""

    servers: tuple[str, ...]
    clients: tuple[str, ...]
    rtt: Array
    """[client, server]"""
    between: Array
    """[server, server]; 0 to itself"""
    apart: Array
    """[client, client], km"""
    server_east: Array
    """Degrees."""
    server_north: Array


def places(servers: int, clients: int, seed: int) -> Places:
    """So many of each, at cities of their own, drawn."""
    text = resources.files("frontage_sim.wide").joinpath("places.csv").read_text()
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    rng = np.random.default_rng([seed, 1])
    drawn = rng.permutation(len(rows))[: servers + clients].tolist()
    where = np.array([(float(rows[i]["north"]), float(rows[i]["east"])) for i in drawn])
    km = distances(where)
    rtt = round_trips(km, rng)
    names = tuple(rows[i]["city"] for i in drawn)
    between = rtt[:servers, :servers].copy()
    np.fill_diagonal(between, 0.0)
    return Places(
        names[:servers],
        names[servers:],
        rtt[servers:, :servers],
        between,
        km[servers:, servers:],
        where[:servers, 1],
        where[:servers, 0],
    )


def round_trips(km: Array, rng: np.random.Generator) -> Array:
    """Seconds, both ways alike."""
    base, slope, ratios = fitted()
    drawn = rng.choice(ratios, km.shape)
    deviation = np.triu(drawn, 1) + np.triu(drawn, 1).T + np.diag(np.ones(len(km)))
    found: Array = np.maximum((base + slope * km) * deviation, km * _LEAST)
    return found


def fitted() -> tuple[float, float, Array]:
    """Seconds, seconds a km, and what pairs of regions have by what the line says."""
    known = Latencies.published()
    where = np.array([REGIONS[place] for place in known.places])
    pairs = list(combinations(range(len(where)), 2))
    km = distances(where)[tuple(zip(*pairs, strict=True))]
    rtt = np.array([known.rtt(known.places[a], known.places[b]) / 1e3 for a, b in pairs])
    slope, base = np.polyfit(km, rtt, 1, w=1 / rtt)
    return float(base), float(slope), rtt / (base + slope * km)


def distances(where: Array) -> Array:
    """Great circles, km, between points in degrees north and east."""
    north, east = np.radians(where).T
    cosine = np.sin(north[:, None]) * np.sin(north) + np.cos(north[:, None]) * np.cos(north) * np.cos(east[:, None] - east)
    found: Array = _EARTH * np.arccos(np.clip(cosine, -1, 1))
    np.fill_diagonal(found, 0.0)
    return found
