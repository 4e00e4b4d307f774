# SPDX-License-Identifier: Apache-2.0
"""The decisions of an epoch, from load reports to the sites of records (Auspice, sections 1.2.1 and 1.2.5).

The engine of `frontage.mapping.placement` chooses the sites, and `grouping` forms placement groups. A region is the clients of one site,
and has its number. This is a state machine without sockets and without a clock.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from frontage.mapping.demand.estimate import Gain, SiteDemand, move_gain
from frontage.mapping.placement.engine import Engine
from frontage.mapping.placement.policy import Policy, Reconfigurer
from frontage.mapping.placement.values import Demand as EngineDemand
from frontage.mapping.placement.values import Flags, Keys, Load, Parameters, PlacementError, Sites, record_key
from frontage.mapping.placement.why import Why, explain
from frontage_records.grouping import Grouping, WantedPlacements, group
from frontage_records.placement.changes import DemandChanges
from frontage_records.placement.counting import Counts, Requests
from frontage_records.placement.reports import Report

SILENT_REPORTS = 4
"""Number of missing reports after which a server is silent. Its site gets no new replicas."""


@dataclass(frozen=True, slots=True)
class Move:
    """A record's move that an epoch has decided."""

    guid: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    gain: float
    """Microseconds saved per second, over all requests for the record. Moves with a large gain come first."""

    @property
    def added(self) -> int:
        """Number of sites that get a copy."""
        return len(set(self.after) - set(self.before))


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of an epoch about one record."""

    why: Why
    active: tuple[int, ...]
    wanted: tuple[int, ...]
    """The sites of the record's placement group."""
    gain: Gain
    is_held: bool
    """True if the gain is within statistical error, and demand has not changed since the last choice of sites."""
    moves: bool


@dataclass(frozen=True, slots=True)
class Epoch:
    """The result of an epoch."""

    number: int
    load: Load
    beta: float
    groups: int
    capacity: Mapping[int, float]
    rtts: Mapping[int, Mapping[int, float]]
    moves: Sequence[Move]
    decisions: Mapping[str, Decision] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Demand:
    """The requests of the last epoch by record and region."""

    counts: Counts
    seconds: float
    """The time in which they were counted."""

    def rate(self, requests: int) -> float:
        """Return a number of requests per second."""
        return requests / self.seconds


@dataclass(frozen=True, slots=True)
class _Received:
    report: Report
    at: float


class Planner:
    """Decides once per epoch which records move."""

    def __init__(self, sites: Sequence[int], parameters: Parameters, policy: Policy, epoch: float, interval: float, groups: int):
        """``interval``: seconds between reports of a server. ``groups``: the most placement groups."""
        self.sites = tuple(sites)
        self.parameters = parameters
        self.reconfigurer = Reconfigurer(policy)
        self._epoch = epoch
        self._silence = SILENT_REPORTS * interval
        self._groups = groups
        self._servers: dict[str, deque[_Received]] = {}
        """The reports of each server within the last epoch, the oldest first."""
        self._parts: dict[str, dict[int, Report]] = {}
        self._number = 0
        self._keys: Keys = np.empty(0, np.uint64)
        """The records of the last epoch: those without demand are forgotten."""
        self._changes = DemandChanges(self.sites, policy.moved)

    def on_report(self, report: Report, part: int, parts: int, now: float) -> None:
        """Receive a message of a report, which counts once all its parts have arrived."""
        if report.site not in self.sites:
            return
        found = self._parts.setdefault(report.server, {})
        if part == 0:
            found.clear()
        found[part] = report
        if len(found) == parts:
            counts = {guid: regions for one in found.values() for guid, regions in one.counts.items()}
            self._servers.setdefault(report.server, deque()).append(_Received(replace(report, counts=counts), now))
            del self._parts[report.server]

    def demand(self, now: float) -> Demand:
        """Return the requests of the last epoch. Reports that begin before it are left out, because demand may have been different."""
        found: dict[str, dict[int, Requests]] = {}
        seconds = 0.0
        for reports in self._recent(now):
            within = [one.report for one in reports if one.at - one.report.seconds >= now - self._epoch]
            seconds = max(seconds, sum(report.seconds for report in within))
            for report in within:
                for guid, regions in report.counts.items():
                    into = found.setdefault(guid, {})
                    for region, requests in regions.items():
                        if region in self.sites and requests.total:
                            into[region] = into.get(region, Requests(0, 0)) + requests
        return Demand({guid: regions for guid, regions in found.items() if regions}, seconds)

    def plan(self, now: float, active: Mapping[str, Sequence[int]]) -> Epoch:
        """Decide on the moves of an epoch. ``active``: the current sites of records, first the one that orders the writes.

        Records that are missing in ``active`` are left out. Raises PlacementError.
        """
        demand = self.demand(now)
        demand = replace(demand, counts={guid: regions for guid, regions in demand.counts.items() if guid in active})
        if not demand.counts:
            raise PlacementError("no record server has reported demand for an existing record")
        sites = self._measured_sites(now)
        column = {site: number for number, site in enumerate(self.sites)}
        engine = Engine(sites, self.parameters)
        engine.observe(_observed(demand, column))
        plan = engine.plan()
        guids = list(demand.counts)
        keys = np.array([record_key(guid) for guid in guids], np.uint64)
        grouping = self._grouping(demand, engine.masks(keys), sites, column)
        lists = grouping.lists(self.sites)
        wanted = [lists[number] for number in grouping.group_of.tolist()]
        now_active = np.array([[site in active[guid] for site in self.sites] for guid in guids])
        masks = np.array([[site in one for site in self.sites] for one in wanted])
        self._count_requests(demand, keys)
        self._number += 1
        gains = [
            move_gain(_site_demand(demand, guid, column), sites, before, after)
            for guid, before, after in zip(guids, now_active, masks, strict=True)
        ]
        held = np.array([_is_within_error(*one) for one in zip(now_active, masks, gains, strict=True)])
        changed = self._changes.changed(demand.counts)
        held &= ~changed
        due = self.reconfigurer.decide(keys, now_active, np.where(held[:, None], now_active, masks))
        self._changes.remember(demand.counts, changed & (due | (now_active == masks).all(axis=1)))
        decisions, moves = {}, []
        for number, guid in enumerate(guids):
            why = explain(engine, int(keys[number]), now_active[number], self.reconfigurer)
            before, after = tuple(active[guid]), wanted[number]
            decisions[guid] = Decision(why, before, after, gains[number], bool(held[number]), bool(due[number]))
            if due[number]:
                rate = demand.rate(sum(_totals(demand.counts[guid])))
                gain = gains[number].mean * rate if math.isfinite(gains[number].mean) else math.inf
                moves.append(Move(guid, before, after, gain))
        moves.sort(key=lambda move: (-move.gain, move.guid))
        capacity = dict(zip(self.sites, sites.capacity.tolist(), strict=True))
        rtts = {site: dict(zip(self.sites, row, strict=True)) for site, row in zip(self.sites, sites.rtts.tolist(), strict=True)}
        return Epoch(self._number, plan.load, plan.beta, len(lists), capacity, rtts, moves, decisions)

    def _grouping(self, demand: Demand, chosen: Flags, sites: Sites, column: Mapping[int, int]) -> Grouping:
        """Return the placement groups for records with these chosen sites, a row for each record."""
        homes = [self._home(regions, sites, mask, column) for regions, mask in zip(demand.counts.values(), chosen, strict=True)]
        reads, writes = (np.array(values, np.float32) for values in zip(*map(_totals, demand.counts.values()), strict=True))
        return group(WantedPlacements(chosen, np.array(homes), reads, writes), self._groups, self.parameters.min_replicas)

    def _count_requests(self, demand: Demand, keys: Keys) -> None:
        """Pass the requests of this epoch to the limits on moves, and forget records without demand."""
        requests = np.array([round(self._epoch * demand.rate(sum(_totals(regions)))) for regions in demand.counts.values()])
        self.reconfigurer.forget(np.setdiff1d(self._keys, keys))
        self._keys = keys
        self.reconfigurer.count(keys, requests, np.zeros(len(keys), np.int64))

    def _recent(self, now: float) -> Iterator[deque[_Received]]:
        """Yield the reports of each server in the last epoch, and forget the others."""
        for server, reports in list(self._servers.items()):
            while reports and reports[0].at < now - max(self._epoch, self._silence):
                reports.popleft()
            if reports:
                yield reports
            else:
                del self._servers[server]

    def _present(self, now: float) -> list[Report]:
        """Return the last report of each server that is not silent."""
        return [reports[-1].report for reports in self._recent(now) if now - reports[-1].at <= self._silence]

    def _measured_sites(self, now: float) -> Sites:
        """Return the sites with their measured capacities and RTTs.

        A site without a measured capacity gets the median of the others. A silent site gets no capacity and thus no replicas.
        """
        reports = self._present(now)
        measured = [report.capacity for report in reports if report.capacity is not None]
        if not measured:
            raise PlacementError("no record server has had enough requests yet to measure its capacity: wait for more requests")
        typical = float(np.median(measured))
        capacity = dict.fromkeys(self.sites, 0.0)
        rtts = np.full((len(self.sites), len(self.sites)), np.inf)
        np.fill_diagonal(rtts, 0.0)
        for report in reports:
            capacity[report.site] += typical if report.capacity is None else report.capacity
            for site, rtt in report.rtts.items():
                if site in self.sites:
                    a, b = self.sites.index(report.site), self.sites.index(site)
                    # Both ends measure the same path; the smaller value contains less queueing delay.
                    rtts[a, b] = rtts[b, a] = min(rtts[a, b], rtts[b, a], rtt)
        return Sites.of([capacity[site] for site in self.sites], rtts, ids=self.sites)

    def _home(self, regions: Mapping[int, Requests], sites: Sites, mask: Flags, column: Mapping[int, int]) -> int:
        """Return the column of the chosen site that is closest to the record's writers or, without writers, to its readers."""
        weights = {column[region]: requests.writes for region, requests in regions.items() if requests.writes > 0}
        weights = weights or {column[region]: requests.reads for region, requests in regions.items()}
        costs = {
            site: sum(weight * float(sites.rtts[region, site]) for region, weight in weights.items())
            for site in np.flatnonzero(mask).tolist()
        }
        return min(costs, key=lambda site: (costs[site], site))


def _observed(demand: Demand, column: Mapping[int, int]) -> EngineDemand:
    """Return the demand for the engine, whose regions are the columns of sites."""
    return EngineDemand.of(
        {
            guid: {column[region]: (demand.rate(one.reads), demand.rate(one.writes)) for region, one in regions.items()}
            for guid, regions in demand.counts.items()
        }
    )


def _totals(regions: Mapping[int, Requests]) -> tuple[int, int]:
    return sum(one.reads for one in regions.values()), sum(one.writes for one in regions.values())


def _site_demand(demand: Demand, guid: str, column: Mapping[int, int]) -> list[SiteDemand]:
    """Return a record's demand with the number of requests from which it was computed."""
    return [
        SiteDemand(demand.rate(one.total), one.total, {column[region]: float(one.total)})
        for region, one in demand.counts[guid].items()
    ]


def _is_within_error(active: Flags, wanted: Flags, gain: Gain) -> bool:
    """Return true if the improvement is within statistical error. A change in the number of replicas is never within it."""
    same_number = active.sum() == wanted.sum()
    return bool((active != wanted).any() and same_number and not gain.is_significant)
