"""The epochs of placement, at the controller that computes the mapping: from load reports to sites, and from sites to moves.

Placement is computed anew from what is in the store, so whoever has the lease goes on where another ended.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from frontage.mapping.compute import engine as mapping
from frontage.mapping.demand import moves
from frontage.mapping.demand.distances import distances, examples
from frontage.mapping.demand.estimate import Gain, Seen, demand, gain, with_updates
from frontage.mapping.demand.history import Heard, last_epoch, moved
from frontage.mapping.demand.moves import Places, Stage
from frontage.mapping.demand.view import ERROR, Document, shortfall, sites_of, view, without_error
from frontage.mapping.demand.waiting import Waiting
from frontage.mapping.errors import StoreError
from frontage.mapping.placement.engine import Engine
from frontage.mapping.placement.policy import Policy, Reconfigurer
from frontage.mapping.placement.values import Demand, Flags, Keys, Load, Parameters, PlacementError, Sites, record_key
from frontage.mapping.placement.why import explain
from frontage.mapping.settings import Placement
from frontage.mapping.store.store import Store

log = logging.getLogger(__name__)

SETTLE_INTERVALS = 2
"""Intervals of the mapping within which every switch and dispatcher knows of a new site."""


@dataclass(slots=True)
class Counters:
    """What was done so far, for metrics."""

    epochs: int = 0
    load: Load | None = None
    """As of the last one."""
    beta: float = 0.0
    moves: int = 0
    """Sites that were added or left."""
    epoch: int = 0
    """Number of the last one, by whichever controller."""
    error: str | None = None
    """Why the last epoch placed nothing."""


class Placer:
    """One leader's. Its methods block."""

    def __init__(self, settings: Placement, store: Store, interval: float):
        """``interval``: seconds between two steps."""
        self.settings = settings
        self.counters = Counters()
        self.reconfigurer = Reconfigurer(policy_of(settings))
        self._store = store
        self._settle = SETTLE_INTERVALS * interval
        self._names = [service.name for service in settings.services]
        self._updates = {service.name: service.updates for service in settings.services}
        self._services: dict[str, Heard] | None = None
        self.waiting = Waiting()
        self._documents: dict[str, Document] = {}
        """As they are in the store."""
        self._ended = -math.inf
        """Unix time of the last epoch's end."""

    @property
    def last_moves(self) -> dict[str, dict[str, int | None]]:
        """Of services that have moved: the numbers of that move's epochs, as `Move` has them."""
        return {name: about for name, one in (self._services or {}).items() if (about := moved(one.move)) is not None}

    def step(self, now: float, holder: str, lease: int, engine: mapping.Engine, out: Collection[int]) -> None:
        """Go on with moves, and in a new epoch decide on others. ``out``: sites of which nobody answers. Raises StoreError."""
        before, present = self._store.places(), self._store.present()
        if self._services is None:
            self._services = self._recover()
        after = {name: places for name, places in before.items() if name in self._updates}
        documents: dict[str, Document] = {}
        if now - self._ended >= self.settings.epoch:
            self._ended = now
            self.counters.epochs += 1
            self.counters.epoch += 1
            try:
                # What could not be placed before is told no longer.
                documents = {name: without_error(one) for name, one in self._documents.items() if ERROR in one}
                documents |= self._decide(now, engine, out, after, present)
                self.counters.error = None
            except PlacementError as error:
                if self.counters.error != str(error):
                    log.error("placement: %s", error)
                self.counters.error = str(error)
                nothing = {"since": 0} | Heard().state
                documents = {name: self._documents.get(name, nothing) | {ERROR: str(error)} for name in self._names}
        after = {
            name: moves.advance(places, present.get(name, ()), now, settle=self._settle, drain=self.settings.drain)
            for name, places in after.items()
        }
        documents |= self._arrived(after, self._documents | documents)
        gone = before.keys() - self._updates.keys()
        changed = {name: places for name, places in after.items() if places != before.get(name)}
        if not (changed or documents or gone):
            return
        try:
            with self._store.publishing(holder, lease) as (connection, version):
                for name, places in changed.items():
                    self._store.place(connection, version, name, before.get(name, {}), places)
                self._store.view(connection, version, documents)
                self._store.unplace(connection, version, gone)
        except StoreError:
            # What was decided is not in the store: decide again, from what is.
            self._services, self._ended = None, -math.inf
            raise
        self._documents |= documents

    def _recover(self) -> dict[str, Heard]:
        """As the store has it: from another leader, or this one before it began anew."""
        found: dict[str, Heard] = {name: Heard() for name in self._names}
        overhead, self.reconfigurer = self.reconfigurer.overhead, Reconfigurer(policy_of(self.settings))
        documents = self._store.views()
        self.counters.epoch = last_epoch(documents.values())
        self._documents = {name: document for name, document in documents.items() if name in found}
        for name, document in self._documents.items():
            found[name] = Heard.recover(document)
            self.reconfigurer.count(_keys([name]), np.array([document["since"]]), np.array([0]))
        self.reconfigurer.overhead = overhead
        return found

    def _listen(self) -> dict[str, list[Seen]]:
        """Take in what is new. Returns what sites see of each service."""
        assert self._services is not None
        told = self._store.told()
        found: dict[str, list[Seen]] = {}
        for name, one in self._services.items():
            seen, requests, reports = one.listen(told.get(name, {}), self.settings.requests)
            found[name] = list(seen.values())
            self.reconfigurer.count(_keys([name]), np.array([requests]), np.array([reports]))
        return found

    def _arrived(self, after: Mapping[str, Places], documents: dict[str, Document]) -> dict[str, Document]:
        """Documents of services whose move has come to its end with this step."""
        assert self._services is not None
        found = {}
        for name in documents.keys() & after.keys():
            move = self._services[name].move
            wanted = [place for place in after[name].values() if place.stage.wanted]
            if move is not None and move.active is None and all(place.stage is Stage.ACTIVE for place in wanted):
                move.active = self.counters.epoch
                found[name] = documents[name] | {"move": moved(move)}
                log.info("placement: %s has moved, in epoch %d", name, move.active)
        return found

    def _decide(
        self,
        now: float,
        engine: mapping.Engine,
        out: Collection[int],
        after: dict[str, dict[int, moves.Place]],
        present: Mapping[str, set[int]],
    ) -> dict[str, Document]:
        """Which services move, and what is to be said of each. Changes ``after``."""
        assert self._services is not None
        seen = self._listen()
        ids = tuple(engine.sites.tolist())
        capacity = [0.0 if site in out else self.settings.capacity.get(site, 0.0) for site in ids]
        rtts = distances(engine)
        demands = {name: found for name in self._names if (found := demand(seen[name], rtts))}
        if not demands:
            return {}
        names = list(demands)
        keys = _keys(names)
        waiting = self.waiting.epoch(self._store.take_waits())
        at = Sites.of(capacity, rtts, [waiting.get(site, 0.0) for site in ids], ids)
        planner = Engine(at, parameters_of(self.settings))
        planner.observe(Demand.of({name: with_updates(found, self._updates[name]) for name, found in demands.items()}))
        active = np.array([self._active(ids, after.get(name), present.get(name, ())) for name in names])
        planner.adopt(keys, active)
        stale = np.array([self._services[name].news for name in names]) | (active & ~planner.sites.usable).any(axis=1)
        planner.again(keys[stale])
        plan = planner.plan()
        before, self.counters.load, self.counters.beta = self.counters.load, plan.load, plan.beta
        if plan.load.shortfall and not (before and before.shortfall):
            log.warning("placement: %s", shortfall(plan.load))
        wanted = planner.masks(keys)
        whys = [explain(planner, int(key), here, self.reconfigurer) for key, here in zip(keys, active, strict=True)]
        cost = self.settings.write_cost
        gains = [
            gain(seen[name], at, here, there, cost * self._updates[name])
            for name, here, there in zip(names, active, wanted, strict=True)
        ]
        held = np.array([_holds(planner, *about) for about in zip(active, wanted, gains, strict=True)])
        due = self.reconfigurer.decide(keys, active, np.where(held[:, None], active, wanted))
        documents = {}
        for i, (name, why) in enumerate(zip(names, whys, strict=True)):
            have = after.get(name) or moves.begin([ids[site] for site in np.flatnonzero(active[i])], now)
            if due[i]:
                after[name] = moves.decide(have, [ids[site] for site in np.flatnonzero(wanted[i])], now)
                self.counters.moves += int((active[i] != wanted[i]).sum())
                log.info("placement: %s moves from %s to %s", name, sites_of(ids, active[i]), sites_of(ids, wanted[i]))
            one, differs = self._services[name], bool((active[i] != wanted[i]).any())
            one.decided(self.counters.epoch, differs=differs, moves=bool(due[i]))
            since = int(self.reconfigurer.since(keys[i : i + 1])[0])
            prefixes = examples(engine, [region.region for region in why.regions])
            better = gains[i] if differs else None
            what = view(name, self.counters.epoch, now, why, prefixes, plan.load, better, moved=bool(due[i]), held=bool(held[i]))
            documents[name] = (
                what | {"load_latency_us": {str(site): waiting.get(site, 0.0) for site in ids}, "since": since} | one.state
            )
        return documents

    @staticmethod
    def _active(ids: tuple[int, ...], places: Places | None, present: Collection[int]) -> list[bool]:
        """Where it shall be by the last decision; without one, where it is."""
        wanted = {site for site, one in places.items() if one.stage.wanted} if places else present
        return [site in wanted for site in ids]


def policy_of(settings: Placement) -> Policy:
    """Of one service there is one who decides: the controller with the lease."""
    return Policy(settings.requests, settings.moved, settings.share, controllers=1)


def parameters_of(settings: Placement) -> Parameters:
    return Parameters(
        min_replicas=settings.min_replicas,
        max_replicas=settings.max_replicas,
        mu=settings.mu,
        write_cost=settings.write_cost,
        seed=settings.seed,
    )


def _holds(planner: Engine, active: Flags, wanted: Flags, gain: Gain) -> bool:
    """Whether a service stays because what is better about the ``wanted`` sites may be chance. How many sites it has is none, nor
    is that one is gone."""
    moves_only = active.sum() == wanted.sum() and not (active & ~planner.sites.usable).any()
    return bool(moves_only and (active != wanted).any() and not gain.certain)


def _keys(names: list[str]) -> Keys:
    return np.array([record_key(name) for name in names], np.uint64)
