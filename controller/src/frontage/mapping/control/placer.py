# SPDX-License-Identifier: Apache-2.0
"""The epochs of placement, at the controller that computes the mapping: from load reports to sites, and from sites to moves.

Placement is computed from what the store holds, so that a new holder of the lease continues where the last one stopped.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from frontage.mapping.compute import engine as mapping
from frontage.mapping.demand import moves
from frontage.mapping.demand.distances import example_prefixes, region_rtts
from frontage.mapping.demand.estimate import Gain, SiteDemand, add_updates, demand_by_region, move_gain
from frontage.mapping.demand.history import DemandReports, last_epoch, move_document
from frontage.mapping.demand.moves import SiteStage, SiteStages, Stage
from frontage.mapping.demand.view import ERROR, Document, format_sites, placement_document, shortfall_message, without_error
from frontage.mapping.demand.waiting import LoadLatency
from frontage.mapping.errors import StoreError
from frontage.mapping.placement.engine import Engine
from frontage.mapping.placement.policy import Policy, Reconfigurer
from frontage.mapping.placement.values import Demand, Flags, Keys, Load, Parameters, PlacementError, Sites, record_key
from frontage.mapping.placement.why import explain
from frontage.mapping.settings import Placement
from frontage.mapping.store.store import Store

log = logging.getLogger(__name__)

SETTLE_INTERVALS = 2
"""Intervals of the mapping within which every switch and dispatcher learns of a new site."""

Services = dict[str, DemandReports]
"""The state of each placed service, as recovered from the store."""


@dataclass(slots=True)
class Counters:
    """Counters of the placer's work, for metrics."""

    epochs: int = 0
    load: Load | None = None
    """The load of the last epoch's plan."""
    beta: float = 0.0
    moves: int = 0
    """Number of sites added or left."""
    epoch: int = 0
    """Number of the last epoch, counted over all controllers."""
    error: str | None = None
    """Why the last epoch placed nothing."""


class Placer:
    """Places services while this controller holds the lease. Its methods block."""

    def __init__(self, settings: Placement, store: Store, interval: float):
        """``interval``: seconds between two steps."""
        self.settings = settings
        self.counters = Counters()
        self.reconfigurer = Reconfigurer(policy_of(settings))
        self.load_latency = LoadLatency()
        self._store = store
        self._settle = SETTLE_INTERVALS * interval
        self._names = [service.name for service in settings.services]
        self._updates = {service.name: service.updates for service in settings.services}
        self._services: Services | None = None
        """None until recovered from the store, and again after a write to the store has failed."""
        self._documents: dict[str, Document] = {}
        """The placement documents in the store."""
        self._last_epoch_at = -math.inf
        """Unix time of the last epoch."""

    @property
    def last_moves(self) -> dict[str, dict[str, int | None]]:
        """The epochs of each moved service's last move, as `Move` has them."""
        documents = {name: move_document(service.move) for name, service in (self._services or {}).items()}
        return {name: document for name, document in documents.items() if document is not None}

    def step(self, now: float, holder: str, lease: int, engine: mapping.Engine, out: Collection[int]) -> None:
        """Advance moves, and at the end of an epoch decide on new ones.

        ``out``: sites where no dispatcher answers. Raises StoreError.
        """
        before, present = self._store.placements(), self._store.present_sites()
        services = self._services
        if services is None:
            services = self._services = self._recover()
        after = {name: stages for name, stages in before.items() if name in self._updates}
        documents: dict[str, Document] = {}
        if now - self._last_epoch_at >= self.settings.epoch:
            self._last_epoch_at = now
            documents = self._epoch(services, now, engine, out, after, present)
        after = {
            name: moves.advance(stages, present.get(name, ()), now, settle=self._settle, drain=self.settings.drain)
            for name, stages in after.items()
        }
        documents |= self._completed_moves(services, after, self._documents | documents)
        removed = before.keys() - self._updates.keys()
        changed = {name: stages for name, stages in after.items() if stages != before.get(name)}
        if not (changed or documents or removed):
            return
        try:
            with self._store.publishing(holder, lease) as (connection, version):
                for name, stages in changed.items():
                    self._store.write_placement(connection, version, name, before.get(name, {}), stages)
                self._store.write_documents(connection, version, documents)
                self._store.remove_placements(connection, version, removed)
        except StoreError:
            # The decisions are not in the store: decide again, from what is.
            self._services, self._last_epoch_at = None, -math.inf
            raise
        self._documents |= documents

    def _epoch(
        self,
        services: Services,
        now: float,
        engine: mapping.Engine,
        out: Collection[int],
        after: dict[str, dict[int, SiteStage]],
        present: Mapping[str, set[int]],
    ) -> dict[str, Document]:
        """Run one epoch of placement. Changes ``after``, and returns the documents to write."""
        self.counters.epochs += 1
        self.counters.epoch += 1
        try:
            documents = {name: without_error(document) for name, document in self._documents.items() if ERROR in document}
            documents |= self._decide(services, now, engine, out, after, present)
        except PlacementError as error:
            if self.counters.error != str(error):
                log.error("placement: %s", error)
            self.counters.error = str(error)
            nothing = {"since": 0} | DemandReports().state
            return {name: self._documents.get(name, nothing) | {ERROR: str(error)} for name in self._names}
        self.counters.error = None
        return documents

    def _recover(self) -> Services:
        """Return the state of all services from the store, where another leader or this one has left it."""
        services = {name: DemandReports() for name in self._names}
        overhead, self.reconfigurer = self.reconfigurer.overhead, Reconfigurer(policy_of(self.settings))
        documents = self._store.documents()
        self.counters.epoch = last_epoch(documents.values())
        self._documents = {name: document for name, document in documents.items() if name in services}
        for name, document in self._documents.items():
            services[name] = DemandReports.recover(document)
            self.reconfigurer.count(_keys([name]), np.array([document["since"]]), np.array([0]))
        self.reconfigurer.overhead = overhead
        return services

    def _process_reports(self, services: Services) -> dict[str, list[SiteDemand]]:
        """Take in new load reports. Returns each service's demand at the sites."""
        reports = self._store.reports()
        demand: dict[str, list[SiteDemand]] = {}
        for name, service in services.items():
            sites, new_requests, new_reports = service.process(reports.get(name, {}), self.settings.requests)
            demand[name] = list(sites.values())
            self.reconfigurer.count(_keys([name]), np.array([new_requests]), np.array([new_reports]))
        return demand

    def _completed_moves(
        self, services: Services, after: Mapping[str, SiteStages], documents: dict[str, Document]
    ) -> dict[str, Document]:
        """Return the documents of services whose move this step has completed."""
        completed = {}
        for name in documents.keys() & after.keys():
            move = services[name].move
            wanted = [item for item in after[name].values() if item.stage.wanted]
            if move is not None and move.active is None and all(item.stage is Stage.ACTIVE for item in wanted):
                move.active = self.counters.epoch
                completed[name] = documents[name] | {"move": move_document(move)}
                log.info("placement: %s has moved, in epoch %d", name, move.active)
        return completed

    def _decide(
        self,
        services: Services,
        now: float,
        engine: mapping.Engine,
        out: Collection[int],
        after: dict[str, dict[int, SiteStage]],
        present: Mapping[str, set[int]],
    ) -> dict[str, Document]:
        """Decide which services move. Changes ``after``, and returns each service's document. Raises PlacementError."""
        site_demand = self._process_reports(services)
        ids = tuple(engine.sites.tolist())
        capacity = [0.0 if site in out else self.settings.capacity.get(site, 0.0) for site in ids]
        rtts = region_rtts(engine)
        demand = {name: rates for name in self._names if (rates := demand_by_region(site_demand[name], rtts))}
        if not demand:
            return {}
        names = list(demand)
        keys = _keys(names)
        load_latency = self.load_latency.update(self._store.take_waits())
        sites = Sites.of(capacity, rtts, [load_latency.get(site, 0.0) for site in ids], ids)
        planner = Engine(sites, parameters_of(self.settings))
        planner.observe(Demand.of({name: add_updates(rates, self._updates[name]) for name, rates in demand.items()}))
        active = np.array([self._active(ids, after.get(name), present.get(name, ())) for name in names])
        planner.adopt(keys, active)
        is_stale = np.array([services[name].has_changed for name in names]) | (active & ~planner.sites.usable).any(axis=1)
        planner.again(keys[is_stale])
        plan = planner.plan()
        last_load, self.counters.load, self.counters.beta = self.counters.load, plan.load, plan.beta
        if plan.load.shortfall and not (last_load and last_load.shortfall):
            log.warning("placement: %s", shortfall_message(plan.load))
        wanted = planner.masks(keys)
        whys = [explain(planner, int(key), row, self.reconfigurer) for key, row in zip(keys, active, strict=True)]
        cost = self.settings.write_cost
        gains = [
            move_gain(site_demand[name], sites, old, new, cost * self._updates[name])
            for name, old, new in zip(names, active, wanted, strict=True)
        ]
        held = np.array([_is_held(planner, *values) for values in zip(active, wanted, gains, strict=True)])
        due = self.reconfigurer.decide(keys, active, np.where(held[:, None], active, wanted))
        documents = {}
        for i, (name, why) in enumerate(zip(names, whys, strict=True)):
            stages = after.get(name) or moves.initial_stages([ids[site] for site in np.flatnonzero(active[i])], now)
            if due[i]:
                after[name] = moves.decide(stages, [ids[site] for site in np.flatnonzero(wanted[i])], now)
                self.counters.moves += int((active[i] != wanted[i]).sum())
                log.info("placement: %s moves from %s to %s", name, format_sites(ids, active[i]), format_sites(ids, wanted[i]))
            service, differs = services[name], bool((active[i] != wanted[i]).any())
            service.on_decision(self.counters.epoch, differs=differs, moves=bool(due[i]))
            prefixes = example_prefixes(engine, [region.region for region in why.regions])
            gain = gains[i] if differs else None
            epoch = self.counters.epoch
            document = placement_document(name, epoch, now, why, prefixes, plan.load, gain, moved=bool(due[i]), held=bool(held[i]))
            document["load_latency_us"] = {str(site): load_latency.get(site, 0.0) for site in ids}
            document["since"] = int(self.reconfigurer.since(keys[i : i + 1])[0])
            documents[name] = document | service.state
        return documents

    @staticmethod
    def _active(ids: tuple[int, ...], stages: SiteStages | None, present: Collection[int]) -> list[bool]:
        """Return for each site whether the last decision includes it; without a decision, whether the service is present."""
        wanted = {site for site, item in stages.items() if item.stage.wanted} if stages else present
        return [site in wanted for site in ids]


def policy_of(settings: Placement) -> Policy:
    """Return the reconfiguration policy. A service has one replica-controller: the holder of the lease."""
    return Policy(settings.requests, settings.moved, settings.share, controllers=1)


def parameters_of(settings: Placement) -> Parameters:
    """Return the parameters of the placement engine."""
    return Parameters(
        min_replicas=settings.min_replicas,
        max_replicas=settings.max_replicas,
        mu=settings.mu,
        write_cost=settings.write_cost,
        seed=settings.seed,
    )


def _is_held(planner: Engine, active: Flags, wanted: Flags, gain: Gain) -> bool:
    """Return true if the improvement is within statistical error.

    A change in the number of replicas, or the loss of a site, is never within it.
    """
    only_moves = active.sum() == wanted.sum() and not (active & ~planner.sites.usable).any()
    return bool(only_moves and (active != wanted).any() and not gain.is_significant)


def _keys(names: list[str]) -> Keys:
    return np.array([record_key(name) for name in names], np.uint64)
