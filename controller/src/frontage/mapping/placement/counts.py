"""How many replicas each record has: F + beta * r/w, from F to M (Auspice, equation 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from frontage.mapping.placement.values import Load, Parameters, PlacementError, Totals

Counts = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Replication:
    """The number of replicas of each record, and why."""

    beta: float
    """The replication control parameter; infinite if all records fit everywhere, 0 if not even F replicas of each fit."""
    counts: Counts
    load: Load


def replicate(reads: Totals, writes: Totals, capacity: float, sites: int, parameters: Parameters) -> Replication:
    """Of records with these ``reads`` and ``writes`` per second, at ``sites`` sites that have ``capacity`` together.

    A record that is read and never updated is everywhere; one that nobody asks for has F replicas. Where capacity is below
    demand each has F, and the load says what is missing. PlacementError if there are fewer sites than F.
    """
    least = parameters.min_replicas
    most = min(sites, sites if parameters.max_replicas is None else parameters.max_replicas)
    if most < least:
        raise PlacementError(f"{sites} usable sites cannot hold {least} replicas of a record: lower min_replicas or add sites")
    budget = parameters.mu * capacity
    served, cost = float(reads.sum()) * parameters.read_cost, writes * parameters.write_cost
    # (F + beta r/w) w = F w + beta r: with the cost of a write as factor throughout, what is left for beta is spent on replicas.
    spare = budget - served - least * float(cost.sum())
    counted = np.flatnonzero((reads > 0) & (writes > 0))
    ratio, weight = reads[counted] / writes[counted], cost[counted]
    beta = largest(ratio, weight, most - least, solve(ratio, weight, most - least, spare), spare)
    counts = np.full(len(reads), least, np.int32)
    counts[(reads > 0) & (writes == 0)] = most
    counts[counted] += extra(ratio, beta, most - least).astype(np.int32)
    return Replication(beta, counts, Load(budget, served, float(counts @ cost)))


def extra(ratio: Totals, beta: float, room: int) -> Totals:
    """Whole replicas beyond F."""
    return np.floor(np.minimum(ratio * beta, room)) if beta < math.inf else np.full(len(ratio), float(room))


def solve(ratio: Totals, weight: Totals, room: int, spare: float) -> float:
    """beta with sum(min(beta * ratio, room) * weight) = spare: infinite if all have room, 0 if nothing is spare.

    The sum rises along straight lines that bend where a record comes to M; so it is looked up at the bends, in their order.
    """
    if spare <= 0:
        return 0.0
    bends = room / ratio
    order = np.argsort(bends)
    bends, slope, full = bends[order], (ratio * weight)[order], room * weight[order]
    below = np.concatenate([[0.0], np.cumsum(full)])
    rising = np.concatenate([np.cumsum(slope[::-1])[::-1], [0.0]])
    spent = below[:-1] + rising[:-1] * bends
    segment = int(np.searchsorted(spent, spare))
    if segment == len(bends):
        return math.inf
    return float((spare - below[segment]) / rising[segment])


def largest(ratio: Totals, weight: Totals, room: int, beta: float, spare: float) -> float:
    """The largest beta whose *whole* replicas fit in ``spare``, at or above the ``beta`` that solves equation 1.

    Replicas are whole, which leaves half a one of each record unspent. What is spent now rises in steps, so between a beta that
    fits and one that does not the interval is halved until no number is between; of records that have as many replicas at both
    ends nothing needs to be looked at again.
    """
    if not 0 < beta < math.inf:
        return beta
    low, at_low = beta, extra(ratio, beta, room)
    # As far as what is unspent would go if replicas were not whole: about where it is spent.
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
