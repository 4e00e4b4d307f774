# SPDX-License-Identifier: Apache-2.0
"""Fits the model of latencies to PlanetLab's, and says how well it agrees with them.

    python experiments/auspice/latencies.py FOLDER          # of PlanetLabData_1 to _18 (github.com/uofa-rzhu3/NetLatency-Data)
    python experiments/auspice/latencies.py FOLDER --fit    # the same, after fitting anew: ten minutes
    python experiments/auspice/latencies.py FOLDER --ratios # figure 2's at load 1 with the data's own latencies

The fit minimises the squares of the logarithms' differences between quantiles of the data and of the model: of all pairs, of pairs by
continent, and of the nearest, second nearest ... of 80 random nodes and the nearest of three. No result of the paper's is in it.
"""

from __future__ import annotations

import argparse
from dataclasses import astuple
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.optimize import minimize
from scipy.spatial.distance import squareform

from frontage_sim.wide.latencies import FITTED, Array, Model
from frontage_sim.wide.load import simulated
from frontage_sim.wide.places import Places, nodes
from frontage_sim.wide.scenario import Load, load

QUANTILES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
NEAREST = (1, 2, 3, 5, 8, 16)
DRAWS, SEEDS, CHECKED = 10, (1, 2, 3, 4, 5, 6), range(100, 120)
WORLDS = 10
MAIN = {"north-america": 0, "europe": 1}
OTHER = 2


def measured(folder: Path) -> Array:
    """Seconds: medians over the data's time slices."""
    slices = [np.loadtxt(folder / f"PlanetLabData_{number}") for number in range(1, 19)]
    found: Array = np.median(slices, axis=0) / 1e3
    np.fill_diagonal(found, 0.0)
    return found


def clusters(rtt: Array) -> npt.NDArray[np.int64]:
    """North America, Europe or another, by average linkage: the two largest, which are 145 ms from each other, and whose nodes are 45.

    The larger is Europe: it is the farther from the next, which are Asia's.
    """
    found = fcluster(linkage(squareform(rtt, checks=False), "average"), 10, "maxclust")
    sizes = np.bincount(found)
    europe, america = sizes.argsort()[::-1][:2]
    return np.where(found == america, 0, np.where(found == europe, 1, OTHER))


def statistics(rtt: Array, continents: npt.NDArray[np.int64], seed: int, draws: int) -> dict[str, Array]:
    """Quantiles, in ms, by what they are of."""
    rng = np.random.default_rng(seed)
    one, other = np.triu_indices(len(rtt), 1)
    pairs = rtt[one, other] * 1e3
    low, high = np.minimum(continents[one], continents[other]), np.maximum(continents[one], continents[other])
    found = {"all pairs": pairs, "other continents": pairs[high == OTHER]}
    for name, ends in {"in North America": (0, 0), "in Europe": (1, 1), "across the Atlantic": (0, 1)}.items():
        found[name] = pairs[(low == ends[0]) & (high == ends[1])]
    near: list[Array] = []
    three: list[Array] = []
    for _ in range(draws):
        drawn = rng.permutation(len(rtt))[:160]
        of = rtt[np.ix_(drawn[80:], drawn[:80])] * 1e3
        near.append(np.sort(of, axis=1))
        three.append(np.take_along_axis(of, rng.random(of.shape).argsort(axis=1)[:, :3], axis=1).min(axis=1))
    ranks = np.concatenate(near)
    found |= {f"nearest {rank} of 80": ranks[:, rank - 1] for rank in NEAREST}
    found["nearest of 3"] = np.concatenate(three)
    return {name: np.quantile(values, QUANTILES) for name, values in found.items()}


def modelled(model: Model, seed: int) -> dict[str, Array]:
    topology = nodes(model, np.random.default_rng([seed, 1]))
    return statistics(topology.rtt, np.array([MAIN.get(name, OTHER) for name in topology.continents.tolist()]), seed, DRAWS)


def off(data: dict[str, Array], model: dict[str, Array]) -> float:
    """Mean square of the logarithms' differences; half a millisecond more or less matters little."""
    return float(np.mean([(np.log(model[name] + 0.5) - np.log(data[name] + 0.5)) ** 2 for name in data]))


def fit(data: dict[str, Array], start: Model) -> Model:
    def value(logarithms: Array) -> float:
        return float(np.mean([off(data, modelled(Model(*np.exp(logarithms)), seed)) for seed in SEEDS]))

    found = minimize(value, np.log(astuple(start)), method="Nelder-Mead", options={"maxfev": 400, "adaptive": True})
    return Model(*np.exp(found.x).tolist())


def ratios(rtt: Array, topologies: int) -> pl.DataFrame:
    """Mean lookup latencies at load 1 by that of Auspice's heuristic, nodes drawn from the data; by RTT where the paper has distance."""
    scenario = load(Path(__file__).with_name("figure2-topologies.yaml"))
    assert isinstance(scenario, Load)
    lines = []
    for seed in range(1, topologies + 1):
        drawn = np.random.default_rng(seed).permutation(len(rtt))[:160]
        servers, clients = drawn[:80], drawn[80:]
        names = tuple(f"node {node}" for node in drawn.tolist())
        here, nowhere = np.ix_(clients, servers), np.zeros(80)
        between, apart = rtt[np.ix_(servers, servers)], rtt[np.ix_(clients, clients)]
        places = Places(names[:80], names[80:], rtt[here], between, apart, nowhere, nowhere, np.full(80, ""))
        mean = {}
        for scheme in scenario.schemes:
            one = scenario.model_copy(update={"schemes": (scheme,), "seed": seed})
            mean[scheme] = float(np.mean(simulated(one, places)["lookup"].to_numpy()))
        lines.append(
            {"seed": seed, "auspice (ms)": mean["auspice"] * 1e3} | {scheme: of / mean["auspice"] for scheme, of in mean.items()}
        )
    return pl.DataFrame(lines)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path, help="of the data's files")
    arguments.add_argument("--fit", action="store_true", help="fit anew")
    arguments.add_argument("--ratios", action="store_true", help="figure 2's at load 1, by the data's own latencies")
    asked = arguments.parse_args()
    rtt = measured(asked.folder)
    if asked.ratios:
        found = ratios(rtt, WORLDS)
        print(found, found.mean())
        return
    site = fcluster(linkage(squareform(rtt, checks=False), "complete"), 0.001, "distance")
    sizes, sites = np.unique(np.bincount(site)[1:], return_counts=True)
    own = (site[:, None] == site)[np.triu_indices(len(rtt), 1)]
    logarithms = np.log(rtt[np.triu_indices(len(rtt), 1)][own])
    print("sites by nodes:", dict(zip(sizes.tolist(), sites.tolist(), strict=True)))
    print(
        f"of one site: {own.mean():.2%} of the pairs, median {np.exp(np.median(logarithms)) * 1e3:.2f} ms, deviation {logarithms.std():.2f}"
    )
    continents = clusters(rtt)
    print("sites by continent (North America, Europe, others):", [len(np.unique(site[continents == which])) for which in range(3)])
    data = statistics(rtt, continents, 0, 60)
    model = fit(data, FITTED) if asked.fit else FITTED
    print(model)
    topologies = [modelled(model, seed) for seed in CHECKED]
    print(f"\nquantiles (ms)        {''.join(f'{quantile:8.0%}' for quantile in QUANTILES)}")
    for name, values in data.items():
        mean = np.mean([topology[name] for topology in topologies], axis=0)
        print(
            f"{name:20}  {''.join(f'{value:8.1f}' for value in values)}\n{'   model':20}  {''.join(f'{value:8.1f}' for value in mean)}"
        )
    print(f"mean square of the logarithms' differences: {np.mean([off(data, topology) for topology in topologies]):.4f}")


if __name__ == "__main__":
    main()
