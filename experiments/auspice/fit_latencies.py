# SPDX-License-Identifier: Apache-2.0
"""Fits the latency model to PlanetLab's latencies, and prints how well both agree.

    python experiments/auspice/fit_latencies.py FOLDER          # compare the model with the data
    python experiments/auspice/fit_latencies.py FOLDER --fit    # the same, after fitting the model again: ten minutes
    python experiments/auspice/fit_latencies.py FOLDER --ratios # the ratios of figure 2 at load 1, with the data's own latencies

FOLDER contains PlanetLabData_1 to PlanetLabData_18 (github.com/uofa-rzhu3/NetLatency-Data). The fit minimises the squared differences
between the logarithms of quantiles of the data and of the model. The quantiles are those of all pairs, of pairs by continent, of the
nearest, second nearest and so on of 80 random nodes, and of the nearest of three. The fit uses no result of the paper.
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

from frontage_sim.auspice.experiments.load import run_on
from frontage_sim.auspice.latency_model import FITTED, Array, LatencyModel
from frontage_sim.auspice.scenario import Load, load
from frontage_sim.auspice.topology import Topology, draw_planetlab

QUANTILES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
NEAREST = (1, 2, 3, 5, 8, 16)
DRAWS, SEEDS, CHECKED = 10, (1, 2, 3, 4, 5, 6), range(100, 120)
TOPOLOGIES = 10
MAIN = {"north-america": 0, "europe": 1}
OTHER = 2


def read_rtt(folder: Path) -> Array:
    """Return the RTTs in seconds: medians over the time slices of the data."""
    slices = [np.loadtxt(folder / f"PlanetLabData_{number}") for number in range(1, 19)]
    rtt: Array = np.median(slices, axis=0) / 1e3
    np.fill_diagonal(rtt, 0.0)
    return rtt


def clusters(rtt: Array) -> npt.NDArray[np.int64]:
    """Return each node's continent (0: North America, 1: Europe, 2: another) by average linkage.

    The two largest clusters are 145 ms apart; within them, nodes are 45 ms apart. The larger one is Europe, because it is farther from
    the next clusters, which are Asia's.
    """
    cluster = fcluster(linkage(squareform(rtt, checks=False), "average"), 10, "maxclust")
    sizes = np.bincount(cluster)
    europe, america = sizes.argsort()[::-1][:2]
    return np.where(cluster == america, 0, np.where(cluster == europe, 1, OTHER))


def statistics(rtt: Array, continents: npt.NDArray[np.int64], seed: int, draws: int) -> dict[str, Array]:
    """Return quantiles in ms of several sets of RTTs, by the name of the set."""
    rng = np.random.default_rng(seed)
    a, b = np.triu_indices(len(rtt), 1)
    pairs = rtt[a, b] * 1e3
    low, high = np.minimum(continents[a], continents[b]), np.maximum(continents[a], continents[b])
    samples = {"all pairs": pairs, "other continents": pairs[high == OTHER]}
    for name, ends in {"in North America": (0, 0), "in Europe": (1, 1), "across the Atlantic": (0, 1)}.items():
        samples[name] = pairs[(low == ends[0]) & (high == ends[1])]
    nearest: list[Array] = []
    three: list[Array] = []
    for _ in range(draws):
        drawn = rng.permutation(len(rtt))[:160]
        drawn_rtt = rtt[np.ix_(drawn[80:], drawn[:80])] * 1e3
        nearest.append(np.sort(drawn_rtt, axis=1))
        any_three = rng.random(drawn_rtt.shape).argsort(axis=1)[:, :3]
        three.append(np.take_along_axis(drawn_rtt, any_three, axis=1).min(axis=1))
    ranks = np.concatenate(nearest)
    samples |= {f"nearest {rank} of 80": ranks[:, rank - 1] for rank in NEAREST}
    samples["nearest of 3"] = np.concatenate(three)
    return {name: np.quantile(values, QUANTILES) for name, values in samples.items()}


def model_statistics(model: LatencyModel, seed: int) -> dict[str, Array]:
    """Return the statistics of a PlanetLab that the model generates."""
    topology = draw_planetlab(model, np.random.default_rng([seed, 1]))
    return statistics(topology.rtt, np.array([MAIN.get(name, OTHER) for name in topology.continents.tolist()]), seed, DRAWS)


def difference(data: dict[str, Array], model: dict[str, Array]) -> float:
    """Return the mean squared difference of the logarithms. The added 0.5 ms gives little weight to differences in the smallest values."""
    return float(np.mean([(np.log(model[name] + 0.5) - np.log(data[name] + 0.5)) ** 2 for name in data]))


def fit(data: dict[str, Array], start: LatencyModel) -> LatencyModel:
    """Return the model with the least difference from the data."""

    def objective(logarithms: Array) -> float:
        return float(np.mean([difference(data, model_statistics(LatencyModel(*np.exp(logarithms)), seed)) for seed in SEEDS]))

    result = minimize(objective, np.log(astuple(start)), method="Nelder-Mead", options={"maxfev": 400, "adaptive": True})
    return LatencyModel(*np.exp(result.x).tolist())


def ratios(rtt: Array, topologies: int) -> pl.DataFrame:
    """Return mean lookup latencies at load 1 as multiples of Auspice's heuristic, with nodes drawn from the data.

    The localities of demand are by RTT; the paper uses distance.
    """
    scenario = load(Path(__file__).with_name("figure2-topologies.yaml"))
    assert isinstance(scenario, Load)
    lines = []
    for seed in range(1, topologies + 1):
        drawn = np.random.default_rng(seed).permutation(len(rtt))[:160]
        servers, clients = drawn[:80], drawn[80:]
        names = tuple(f"node {node}" for node in drawn.tolist())
        unknown = np.zeros(80)
        server_rtt, client_distance = rtt[np.ix_(servers, servers)], rtt[np.ix_(clients, clients)]
        topology = Topology(
            names[:80], names[80:], rtt[np.ix_(clients, servers)], server_rtt, client_distance, unknown, unknown, np.full(80, "")
        )
        mean = {}
        for scheme in scenario.schemes:
            single = scenario.model_copy(update={"schemes": (scheme,), "seed": seed})
            mean[scheme] = float(np.mean(run_on(single, topology)["lookup"].to_numpy()))
        lines.append(
            {"seed": seed, "auspice (ms)": mean["auspice"] * 1e3}
            | {scheme: latency / mean["auspice"] for scheme, latency in mean.items()}
        )
    return pl.DataFrame(lines)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path, help="folder of the data files")
    arguments.add_argument("--fit", action="store_true", help="fit the model again")
    arguments.add_argument(
        "--ratios", action="store_true", help="print the ratios of figure 2 at load 1 with the data's own latencies"
    )
    options = arguments.parse_args()
    rtt = read_rtt(options.folder)
    if options.ratios:
        table = ratios(rtt, TOPOLOGIES)
        print(table, table.mean())
        return
    site = fcluster(linkage(squareform(rtt, checks=False), "complete"), 0.001, "distance")
    sizes, sites = np.unique(np.bincount(site)[1:], return_counts=True)
    same_site = (site[:, None] == site)[np.triu_indices(len(rtt), 1)]
    logarithms = np.log(rtt[np.triu_indices(len(rtt), 1)][same_site])
    median = np.exp(np.median(logarithms)) * 1e3
    print("sites by nodes:", dict(zip(sizes.tolist(), sites.tolist(), strict=True)))
    print(f"same site: {same_site.mean():.2%} of the pairs, median {median:.2f} ms, deviation {logarithms.std():.2f}")
    continents = clusters(rtt)
    print("sites by continent (North America, Europe, others):", [len(np.unique(site[continents == which])) for which in range(3)])
    data = statistics(rtt, continents, 0, 60)
    model = fit(data, FITTED) if options.fit else FITTED
    print(model)
    topologies = [model_statistics(model, seed) for seed in CHECKED]
    print(f"\nquantiles (ms)        {''.join(f'{quantile:8.0%}' for quantile in QUANTILES)}")
    for name, values in data.items():
        mean = np.mean([topology[name] for topology in topologies], axis=0)
        print(
            f"{name:20}  {''.join(f'{value:8.1f}' for value in values)}\n{'   model':20}  {''.join(f'{value:8.1f}' for value in mean)}"
        )
    print(f"mean squared difference of the logarithms: {np.mean([difference(data, topology) for topology in topologies]):.4f}")


if __name__ == "__main__":
    main()
