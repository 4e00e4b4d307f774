# SPDX-License-Identifier: Apache-2.0
"""The decisions of an epoch, from load reports to the sites of records (Auspice, sections 1.2.1 and 1.2.5).

The engine of `frontage.mapping.placement` chooses the sites, and `grouping` forms placement groups. A region is the clients of one site,
and has its number. This is a state machine without sockets and without a clock.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from frontage.mapping.demand.estimate import Gain, SiteDemand, move_gain
from frontage.mapping.placement.engine import Engine
from frontage.mapping.placement.policy import Policy, Reconfigurer
from frontage.mapping.placement.values import Demand, Flags, Keys, Load, Parameters, PlacementError, Sites, record_key
from frontage.mapping.placement.why import Why, explain
from frontage_records.grouping import Grouping, WantedPlacements, group
from frontage_records.placement.counting import Rates
from frontage_records.placement.reports import HALF_LIVES_PER_EPOCH, Report

SILENT_REPORTS = 4
"""Number of missing reports after which a server is silent. Its site gets no new replicas, and its demand no longer counts."""


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
    """True if the gain is within statistical error."""
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
class _Server:
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
        self._window = 2 * epoch / HALF_LIVES_PER_EPOCH / math.log(2)
        """Seconds of steady requests that give the same sample size as the decaying counts."""
        self._silence = SILENT_REPORTS * interval
        self._groups = groups
        self._servers: dict[str, _Server] = {}
        self._parts: dict[str, dict[int, Report]] = {}
        self._number = 0
        self._keys: Keys = np.empty(0, np.uint64)
        """The records of the last epoch: those without demand are forgotten."""

    def on_report(self, report: Report, part: int, parts: int, now: float) -> None:
        """Receive a message of a report, which counts once all its parts have arrived."""
        if report.site not in self.sites:
            return
        found = self._parts.setdefault(report.server, {})
        if part == 0:
            found.clear()
        found[part] = report
        if len(found) == parts:
            demand = {guid: rates for one in found.values() for guid, rates in one.demand.items()}
            whole = Report(report.site, report.server, report.capacity, report.rtts, demand)
            self._servers[report.server] = _Server(whole, now)
            del self._parts[report.server]

    def demand(self, now: float) -> dict[str, dict[int, Rates]]:
        """Return the rates by record and region, over all servers that report."""
        found: dict[str, dict[int, Rates]] = {}
        for report in self._present(now):
            for guid, regions in report.demand.items():
                into = found.setdefault(guid, {})
                for region, rates in regions.items():
                    if region in self.sites:
                        old = into.get(region, Rates(0.0, 0.0))
                        into[region] = Rates(old.reads + rates.reads, old.writes + rates.writes)
        return {guid: regions for guid, regions in found.items() if regions}

    def plan(self, now: float, active: Mapping[str, Sequence[int]]) -> Epoch:
        """Decide on the moves of an epoch. ``active``: the current sites of records, first the one that orders the writes.

        Records that are missing in ``active`` are left out. Raises PlacementError.
        """
        demand = {guid: regions for guid, regions in self.demand(now).items() if guid in active}
        if not demand:
            raise PlacementError("no record server has reported demand for an existing record")
        sites = self._measured_sites(now)
        column = {site: number for number, site in enumerate(self.sites)}
        engine = Engine(sites, self.parameters)
        engine.observe(_observed(demand, column))
        plan = engine.plan()
        guids = list(demand)
        keys = np.array([record_key(guid) for guid in guids], np.uint64)
        grouping = self._grouping(demand, engine.masks(keys), sites, column)
        lists = grouping.lists(self.sites)
        wanted = [lists[number] for number in grouping.group_of.tolist()]
        now_active = np.array([[site in active[guid] for site in self.sites] for guid in guids])
        masks = np.array([[site in one for site in self.sites] for one in wanted])
        self._count_requests(demand, keys)
        self._number += 1
        gains = [
            move_gain(_site_demand(demand[guid], column, self._window), sites, before, after)
            for guid, before, after in zip(guids, now_active, masks, strict=True)
        ]
        held = np.array([_is_held(*one) for one in zip(now_active, masks, gains, strict=True)])
        due = self.reconfigurer.decide(keys, now_active, np.where(held[:, None], now_active, masks))
        decisions, moves = {}, []
        for number, guid in enumerate(guids):
            why = explain(engine, int(keys[number]), now_active[number], self.reconfigurer)
            before, after = tuple(active[guid]), wanted[number]
            decisions[guid] = Decision(why, before, after, gains[number], bool(held[number]), bool(due[number]))
            if due[number]:
                rate = sum(_totals(demand[guid]))
                gain = gains[number].mean * rate if math.isfinite(gains[number].mean) else math.inf
                moves.append(Move(guid, before, after, gain))
        moves.sort(key=lambda move: (-move.gain, move.guid))
        capacity = dict(zip(self.sites, sites.capacity.tolist(), strict=True))
        rtts = {site: dict(zip(self.sites, row, strict=True)) for site, row in zip(self.sites, sites.rtts.tolist(), strict=True)}
        return Epoch(self._number, plan.load, plan.beta, len(lists), capacity, rtts, moves, decisions)

    def _grouping(
        self, demand: Mapping[str, Mapping[int, Rates]], chosen: Flags, sites: Sites, column: Mapping[int, int]
    ) -> Grouping:
        """Return the placement groups for records with these chosen sites, a row for each record."""
        homes = [self._home(regions, sites, mask, column) for regions, mask in zip(demand.values(), chosen, strict=True)]
        reads, writes = (np.array(values, np.float32) for values in zip(*map(_totals, demand.values()), strict=True))
        return group(WantedPlacements(chosen, np.array(homes), reads, writes), self._groups, self.parameters.min_replicas)

    def _count_requests(self, demand: Mapping[str, Mapping[int, Rates]], keys: Keys) -> None:
        """Pass the requests of this epoch to the limits on moves, and forget records without demand."""
        requests = np.array([round(self._epoch * sum(_totals(regions))) for regions in demand.values()])
        self.reconfigurer.forget(np.setdiff1d(self._keys, keys))
        self._keys = keys
        self.reconfigurer.count(keys, requests, np.zeros(len(keys), np.int64))

    def _present(self, now: float) -> list[Report]:
        self._servers = {name: server for name, server in self._servers.items() if now - server.at <= self._silence}
        return [server.report for server in self._servers.values()]

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

    def _home(self, regions: Mapping[int, Rates], sites: Sites, mask: Flags, column: Mapping[int, int]) -> int:
        """Return the column of the chosen site that is closest to the record's writers or, without writers, to its readers."""
        weights = {column[region]: rates.writes for region, rates in regions.items() if rates.writes > 0}
        weights = weights or {column[region]: rates.reads for region, rates in regions.items()}
        costs = {
            site: sum(weight * float(sites.rtts[region, site]) for region, weight in weights.items())
            for site in np.flatnonzero(mask).tolist()
        }
        return min(costs, key=lambda site: (costs[site], site))


def _observed(demand: Mapping[str, Mapping[int, Rates]], column: Mapping[int, int]) -> Demand:
    """Return the demand for the engine, whose regions are the columns of sites."""
    return Demand.of(
        {
            guid: {column[region]: (rates.reads, rates.writes) for region, rates in regions.items()}
            for guid, regions in demand.items()
        }
    )


def _totals(regions: Mapping[int, Rates]) -> tuple[float, float]:
    return sum(rates.reads for rates in regions.values()), sum(rates.writes for rates in regions.values())


def _site_demand(regions: Mapping[int, Rates], column: Mapping[int, int], seconds: float) -> list[SiteDemand]:
    """Return a record's demand with the number of requests from which it was computed."""
    found = []
    for region, rates in regions.items():
        rate = rates.reads + rates.writes
        counted = max(1, round(rate * seconds))
        found.append(SiteDemand(rate, counted, {column[region]: float(counted)}))
    return found


def _is_held(active: Flags, wanted: Flags, gain: Gain) -> bool:
    """Return true if the improvement is within statistical error. A change in the number of replicas is never within it."""
    same_number = active.sum() == wanted.sum()
    return bool((active != wanted).any() and same_number and not gain.is_significant)
