# SPDX-License-Identifier: Apache-2.0
"""The effect of nu, the share of a name's replicas that are placed by locality (Auspice, section 1.2.1)."""

from __future__ import annotations

import numpy as np
import polars as pl

from frontage.mapping.placement.engine import Engine
from frontage.mapping.placement.routing import Matrices, nearest, route
from frontage.mapping.placement.values import Parameters
from frontage_sim.auspice.scenario import AuspiceScenario, Perturbation
from frontage_sim.auspice.schemes import MIN_REPLICAS, Flags, place_by_demand, placement_sites
from frontage_sim.auspice.topology import Topology, draw_topology
from frontage_sim.auspice.workload import Workload, draw_workload

CHOICES = {"paper": 0, "frontage": Parameters().weighed}
"""Top regions for which the sites by locality are chosen jointly, by the name of the choice."""


def run(settings: AuspiceScenario) -> pl.DataFrame:
    """Return a row for each load, nu, choice of the sites by locality, and time of planning.

    `mean` is the mean RTT of a request in seconds, and `fullest` the load of the fullest server as a share of its capacity. Clients use
    the nearest replica (``first``: the first plan, by RTT alone), or avoid full servers (``settled``: plans by measured load latencies).
    """
    assert isinstance(settings, Perturbation)
    topology = draw_topology(settings.topology.servers, settings.topology.clients, settings.seed)
    rows = []
    for load in settings.loads:
        workload = draw_workload(settings.names, load, topology, settings.seed)
        for choice, weighed in CHOICES.items():
            for nu in settings.nu:
                parameters = Parameters(
                    min_replicas=MIN_REPLICAS,
                    nu=nu,
                    weighed=weighed,
                    write_cost=settings.costs.update_cost,
                    seed=settings.seed,
                )
                rows += [
                    {"load": load, "choice": choice, "nu": nu, "plan": plan, "mean": mean, "fullest": fullest}
                    for plan, mean, fullest in _measure(workload, topology, parameters, settings)
                ]
    return pl.DataFrame(rows)


def _measure(
    workload: Workload, topology: Topology, parameters: Parameters, settings: Perturbation
) -> list[tuple[str, float, float]]:
    """Return the mean RTT and the relative load of the fullest server under the first plan, and after the plans have settled."""
    servers = placement_sites(topology, settings.costs.capacity)
    matrices = Matrices.of(workload.demand(), len(topology.clients), parameters)
    first = nearest(_first_plan(workload, topology, parameters, settings), matrices, servers)
    settled = route(place_by_demand(workload, topology, parameters, settings.costs), matrices, servers)
    return [
        (plan, routed.latency / 1e6, float(np.max(routed.load / servers.capacity)))
        for plan, routed in (("first", first), ("settled", settled))
    ]


def _first_plan(workload: Workload, topology: Topology, parameters: Parameters, settings: Perturbation) -> Flags:
    """Return the placement [name, server] by RTT alone: no load latency has been measured yet."""
    demand = workload.demand()
    engine = Engine(placement_sites(topology, settings.costs.planned_capacity), parameters)
    engine.observe(demand)
    engine.plan()
    return engine.masks(demand.keys)
