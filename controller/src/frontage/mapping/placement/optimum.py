# SPDX-License-Identifier: Apache-2.0
"""The minimum mean latency of any placement, as an exact mixed-integer program for few records (Auspice, section 1.2.1).

The tests compare the engine with it. It needs SciPy, whose solver is HiGHS (extra ``optimum``).

    minimize    sum of requests[i,r] * rtt[r,s] * y[i,r,s]
    such that   sum over s of x[i,s] = count[i]            as many replicas per record as the engine has
                sum over s of y[i,r,s] = 1                 each region's requests for a record are served
                y[i,r,s] <= x[i,s]                         by a replica
                sum over i of (sum over r of reads[i,r] * y[i,r,s] + updates[i] * x[i,s]) <= capacity[s]
                x in {0, 1}, y from 0 to 1                 several sites may serve a region
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, hstack, kron
from scipy.sparse import eye_array as identity

from frontage.mapping.placement.routing import Matrices, reachable
from frontage.mapping.placement.values import Flags, Rows, Sites


@dataclass(frozen=True, slots=True)
class Optimum:
    """The solver's result."""

    latency: float
    """Mean latency of the best placement found, in microseconds per request, as in `routing.Routed`."""
    bound: float
    """Lower bound: no placement has a smaller mean latency."""
    chosen: Flags
    """[record, site]."""


def optimum(demand: Matrices, counts: Rows, sites: Sites, gap: float = 0.01) -> Optimum | None:
    """Return the best placement of ``counts`` replicas, within a relative ``gap``; None if no placement can serve the demand."""
    holds = np.tile(sites.usable, (len(counts), 1))
    return _solve(demand, counts, sites, np.zeros_like(holds), holds, gap)


def best_routing(demand: Matrices, chosen: Flags, sites: Sites) -> float | None:
    """Return the minimum mean latency of a given placement; None if it cannot serve the demand."""
    found = _solve(demand, chosen.sum(axis=1), sites, chosen, chosen, 0.0)
    return None if found is None else found.latency


def _solve(demand: Matrices, counts: Rows, sites: Sites, least: Flags, most: Flags, gap: float) -> Optimum | None:
    records, regions = demand.reads.shape
    number = len(sites.ids)
    holding, serving = records * number, records * regions * number
    times = demand.requests[:, :, None] * reachable(sites) / demand.requests.sum()
    each = np.ones((1, number))
    # Rows of the constraints: by record, by (record, region), by (record, region, site), by site.
    replicas = hstack([kron(identity(records), each), coo_array((records, serving))])
    served = hstack([coo_array((records * regions, holding)), kron(identity(records * regions), each)])
    at_replicas = hstack([-kron(kron(identity(records), np.ones((regions, 1))), identity(number)), identity(serving)])
    updates = kron(demand.updates[None], identity(number))
    load = hstack([updates, kron(demand.reads.reshape(1, -1), identity(number))])
    found = milp(
        np.concatenate([np.zeros(holding), times.ravel()]),
        constraints=[
            LinearConstraint(replicas.tocsr(), counts, counts),
            LinearConstraint(served.tocsr(), 1, 1),
            LinearConstraint(at_replicas.tocsr(), -np.inf, 0),
            LinearConstraint(load.tocsr(), -np.inf, sites.capacity),
        ],
        bounds=Bounds(
            np.concatenate([least.ravel().astype(float), np.zeros(serving)]),
            np.concatenate([most.ravel().astype(float), np.ones(serving)]),
        ),
        integrality=np.concatenate([(least != most).ravel().astype(int), np.zeros(serving, int)]),
        options={"mip_rel_gap": gap},
    )
    if found.x is None:
        return None
    chosen: Flags = found.x[:holding].reshape(records, number) > 0.5
    bound = found.fun if found.mip_dual_bound is None else min(found.fun, found.mip_dual_bound)
    return Optimum(float(found.fun), float(bound), chosen)
