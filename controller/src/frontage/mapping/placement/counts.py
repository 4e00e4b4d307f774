# SPDX-License-Identifier: Apache-2.0
"""The number of replicas of each record: F + beta * r/w, from F to M (Auspice, equation 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from frontage.mapping.placement.values import Load, Parameters, PlacementError, Totals

Counts = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Replication:
    """The number of replicas of each record, and beta."""

    beta: float
    """The replication control parameter; infinite if all records fit everywhere, 0 if not even F replicas of each fit."""
    counts: Counts
    load: Load


def replicate(reads: Totals, writes: Totals, capacity: float, sites: int, parameters: Parameters) -> Replication:
    """Return the replication of records with these ``reads`` and ``writes`` per second.

    ``sites``: the number of usable sites; ``capacity``: their total capacity. A record that is read and never updated has replicas
    at all sites (M at most); a record without requests has F. If capacity is below demand, each record has F replicas, and the load
    shows the shortfall. Raises PlacementError if there are fewer sites than F.
    """
    least = parameters.min_replicas
    most = min(sites, sites if parameters.max_replicas is None else parameters.max_replicas)
    if most < least:
        raise PlacementError(f"{sites} usable sites are too few for {least} replicas of a record: lower min_replicas, or add sites")
    budget = parameters.mu * capacity
    served, cost = float(reads.sum()) * parameters.read_cost, writes * parameters.write_cost
    # (F + beta r/w) w = F w + beta r, with the cost of a write as a factor throughout. The rest of the budget goes to beta.
    spare = budget - served - least * float(cost.sum())
    counted = np.flatnonzero((reads > 0) & (writes > 0))
    ratio, weight = reads[counted] / writes[counted], cost[counted]
    beta = largest(ratio, weight, most - least, solve(ratio, weight, most - least, spare), spare)
    counts = np.full(len(reads), least, np.int32)
    counts[(reads > 0) & (writes == 0)] = most
    counts[counted] += extra(ratio, beta, most - least).astype(np.int32)
    return Replication(beta, counts, Load(budget, served, float(counts @ cost)))


def extra(ratio: Totals, beta: float, room: int) -> Totals:
    """Return the number of whole replicas beyond F."""
    return np.floor(np.minimum(ratio * beta, room)) if beta < math.inf else np.full(len(ratio), float(room))


def solve(ratio: Totals, weight: Totals, room: int, spare: float) -> float:
    """Return the beta with sum(min(beta * ratio, room) * weight) = spare: infinite if all records fit at M, 0 if nothing is spare.

    The sum is piecewise linear in beta, with one breakpoint per record where it reaches M. Sorting the breakpoints gives the exact
    solution.
    """
    if spare <= 0:
        return 0.0
    breakpoints = room / ratio
    order = np.argsort(breakpoints)
    breakpoints, slope, full = breakpoints[order], (ratio * weight)[order], room * weight[order]
    below = np.concatenate([[0.0], np.cumsum(full)])
    rising = np.concatenate([np.cumsum(slope[::-1])[::-1], [0.0]])
    spent = below[:-1] + rising[:-1] * breakpoints
    segment = int(np.searchsorted(spent, spare))
    if segment == len(breakpoints):
        return math.inf
    return float((spare - below[segment]) / rising[segment])


def largest(ratio: Totals, weight: Totals, room: int, beta: float, spare: float) -> float:
    """Return the largest beta whose *whole* replicas fit in ``spare``, at or above the ``beta`` that solves equation 1.

    Rounding to whole replicas leaves half a replica per record unspent on average. The spent capacity is a step function of beta, so
    bisection between a beta that fits and one that does not finds the step. Records with equal counts at both ends are dropped from
    the search.
    """
    if not 0 < beta < math.inf:
        return beta
    low, at_low = beta, extra(ratio, beta, room)
    # The first step: where the unspent rest would be spent if replicas were divisible.
    step = max((spare - float(at_low @ weight)) / float(ratio @ weight), math.ulp(beta))
    while float((at_high := extra(ratio, high := low + step, room)) @ weight) <= spare:
        if at_high.min() == room:
            return math.inf
        low, at_low, step = high, at_high, 2 * step
    while (open_ := at_low != at_high).any() and (middle := low + (high - low) / 2) not in (low, high):
        spare -= float(at_low[~open_] @ weight[~open_])
        ratio, weight, at_low, at_high = ratio[open_], weight[open_], at_low[open_], at_high[open_]
        count = extra(ratio, middle, room)
        if float(count @ weight) <= spare:
            low, at_low = middle, count
        else:
            high, at_high = middle, count
    return low
