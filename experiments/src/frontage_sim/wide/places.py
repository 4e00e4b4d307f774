# SPDX-License-Identifier: Apache-2.0
"""Who is where: nodes at sites in cities, as PlanetLab had them, and how far they are from each other."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from importlib import resources

import numpy as np
import numpy.typing as npt

from frontage_sim.wide.latencies import CONTINENTS, FITTED, NODES, SITES, Array, Model, between_nodes, between_sites, distances


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
    countries: npt.NDArray[np.str_]
    """Of the clients, by ISO 3166's codes."""


@dataclass(frozen=True)
class Nodes:
    """All that there are."""

    names: tuple[str, ...]
    """A city, and a number."""
    where: Array
    """Degrees north and east."""
    countries: npt.NDArray[np.str_]
    continents: npt.NDArray[np.str_]
    rtt: Array
    """[node, node], seconds; 0 to itself"""


def places(servers: int, clients: int, seed: int) -> Places:
    """So many of each: nodes drawn from those of a topology."""
    rng = np.random.default_rng([seed, 1])
    topology = nodes(FITTED, rng)
    drawn = rng.permutation(NODES)[: servers + clients]
    rtt = topology.rtt[np.ix_(drawn, drawn)]
    where = topology.where[drawn]
    names = tuple(topology.names[node] for node in drawn.tolist())
    return Places(
        names[:servers],
        names[servers:],
        rtt[servers:, :servers],
        rtt[:servers, :servers],
        distances(where[servers:]),
        where[:servers, 1],
        where[:servers, 0],
        topology.countries[drawn[servers:]],
    )


def nodes(model: Model, rng: np.random.Generator) -> Nodes:
    """Sites are at cities drawn from their continent's, so that a city may have several, and have as many nodes as PlanetLab's had."""
    text = resources.files("frontage_sim.wide").joinpath("places.csv").read_text()
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    continents = np.array([row["continent"] for row in rows])
    sizes = rng.permutation(np.repeat(list(SITES), list(SITES.values())))
    shares = np.array(list(CONTINENTS.values()))
    drawn = rng.choice(list(CONTINENTS), len(sizes), p=shares / shares.sum())
    city = np.array([rng.choice(np.flatnonzero(continents == continent)) for continent in drawn])
    where = np.array([(float(row["north"]), float(row["east"])) for row in rows])[city]
    site = np.repeat(np.arange(len(sizes)), sizes)
    rtt = between_nodes(site, between_sites(where, drawn, model, rng), rng)
    seen: Counter[str] = Counter()
    names = []
    for row in (rows[of] for of in city[site].tolist()):
        seen[row["city"]] += 1
        names.append(f"{row['city']} {seen[row['city']]}")
    return Nodes(tuple(names), where[site], np.array([row["country"] for row in rows])[city[site]], drawn[site], rtt)
