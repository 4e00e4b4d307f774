# SPDX-License-Identifier: Apache-2.0
"""Random topologies of servers and clients on PlanetLab-like nodes: their locations and the round-trip times between them."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from importlib import resources

import numpy as np
import numpy.typing as npt

from frontage_sim.auspice.latency_model import (
    CONTINENTS,
    FITTED,
    NODES,
    SITES,
    Array,
    LatencyModel,
    between_nodes,
    between_sites,
    distances,
)


@dataclass(frozen=True)
class Topology:
    """The nodes of an experiment. RTTs are in seconds."""

    servers: tuple[str, ...]
    clients: tuple[str, ...]
    rtt: Array
    """RTT, [client, server]."""
    server_rtt: Array
    """RTT, [server, server]; 0 on the diagonal."""
    client_distance: Array
    """Kilometres, [client, client]."""
    server_east: Array
    """Longitude in degrees."""
    server_north: Array
    """Latitude in degrees."""
    countries: npt.NDArray[np.str_]
    """ISO 3166 code of each client's country."""


@dataclass(frozen=True)
class PlanetLab:
    """All nodes of a modelled PlanetLab."""

    names: tuple[str, ...]
    """City and number."""
    locations: Array
    """Degrees north and east."""
    countries: npt.NDArray[np.str_]
    continents: npt.NDArray[np.str_]
    rtt: Array
    """Seconds, [node, node]; 0 on the diagonal."""


def draw_topology(servers: int, clients: int, seed: int) -> Topology:
    """Return a topology of randomly drawn nodes; equal arguments give equal topologies."""
    rng = np.random.default_rng([seed, 1])
    planetlab = draw_planetlab(FITTED, rng)
    drawn = rng.permutation(NODES)[: servers + clients]
    rtt = planetlab.rtt[np.ix_(drawn, drawn)]
    locations = planetlab.locations[drawn]
    names = tuple(planetlab.names[node] for node in drawn.tolist())
    return Topology(
        names[:servers],
        names[servers:],
        rtt[servers:, :servers],
        rtt[:servers, :servers],
        distances(locations[servers:]),
        locations[:servers, 1],
        locations[:servers, 0],
        planetlab.countries[drawn[servers:]],
    )


def draw_planetlab(model: LatencyModel, rng: np.random.Generator) -> PlanetLab:
    """Return random sites with as many nodes each as PlanetLab's sites had.

    Each site is in a random city of its continent, so a city may have several sites.
    """
    text = resources.files("frontage_sim.auspice").joinpath("cities.csv").read_text()
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    continents = np.array([row["continent"] for row in rows])
    sizes = rng.permutation(np.repeat(list(SITES), list(SITES.values())))
    shares = np.array(list(CONTINENTS.values()))
    drawn = rng.choice(list(CONTINENTS), len(sizes), p=shares / shares.sum())
    city = np.array([rng.choice(np.flatnonzero(continents == continent)) for continent in drawn])
    locations = np.array([(float(row["north"]), float(row["east"])) for row in rows])[city]
    site = np.repeat(np.arange(len(sizes)), sizes)
    rtt = between_nodes(site, between_sites(locations, drawn, model, rng), rng)
    nodes_in_city: Counter[str] = Counter()
    names = []
    for row in (rows[index] for index in city[site].tolist()):
        nodes_in_city[row["city"]] += 1
        names.append(f"{row['city']} {nodes_in_city[row['city']]}")
    return PlanetLab(tuple(names), locations[site], np.array([row["country"] for row in rows])[city[site]], drawn[site], rtt)
