"""The epochs of placement, at the controller that computes the mapping: from load reports to sites, and from sites to moves.

Placement is computed anew from what is in the store, so whoever has the lease goes on where another ended.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from frontage.demand import moves
from frontage.demand.distances import distances, examples
from frontage.demand.moves import Places
from frontage.demand.settings import Placement
from frontage.demand.store import Told
from frontage.demand.view import Document, view
from frontage.enduser import engine as mapping
from frontage.enduser.database import StoreError
from frontage.enduser.store import Store
from frontage.placement.engine import Engine
from frontage.placement.policy import Policy, Reconfigurer
from frontage.placement.values import Demand, Flags, Keys, Load, Parameters, PlacementError, Sites, record_key
from frontage.placement.why import explain

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
    error: str | None = None
    """Why the last epoch placed nothing."""


@dataclass(slots=True)
class _Heard:
    """Of one service at one site, what was taken from its reports."""

    requests: int = 0
    seconds: float = 0.0
    reports: int = 0


@dataclass(slots=True)
class _Service:
    heard: dict[int, _Heard] = field(default_factory=dict)
    news: bool = True
    """Its demand has moved since it was placed."""


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
        self._services: dict[str, _Service] | None = None
        self._epoch = -math.inf

    def step(self, now: float, holder: str, lease: int, engine: mapping.Engine, out: Collection[int]) -> None:
        """Go on with moves, and in a new epoch decide on others. ``out``: sites of which nobody answers. Raises StoreError."""
        before, present = self._store.places(), self._store.present()
        if self._services is None:
            self._services = self._recover()
        after = {name: places for name, places in before.items() if name in self._updates}
        documents: dict[str, Document] = {}
        if now - self._epoch >= self.settings.epoch:
            self._epoch = now
            self.counters.epochs += 1
            try:
                documents = self._decide(now, engine, out, after, present)
                self.counters.error = None
            except PlacementError as error:
                if self.counters.error != str(error):
                    log.error("placement: %s", error)
                self.counters.error = str(error)
        after = {
            name: moves.advance(places, present.get(name, ()), now, settle=self._settle, drain=self.settings.drain)
            for name, places in after.items()
        }
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
            self._services, self._epoch = None, -math.inf
            raise

    def _recover(self) -> dict[str, _Service]:
        """As the store has it: from another leader, or this one before it began anew."""
        found: dict[str, _Service] = {name: _Service() for name in self._names}
        overhead, self.reconfigurer = self.reconfigurer.overhead, Reconfigurer(policy_of(self.settings))
        for name, document in self._store.views().items():
            if name in found:
                heard = {int(site): _Heard(*numbers) for site, numbers in document["heard"].items()}
                found[name] = _Service(heard, news=document["news"])
                self.reconfigurer.count(_keys([name]), np.array([document["since"]]), np.array([0]))
        self.reconfigurer.overhead = overhead
        return found

    def _listen(self, told: Mapping[str, Mapping[int, Told]]) -> dict[str, dict[int, float]]:
        """Take in what is new. Returns each service's handshakes a second by site: of all that was told in this epoch, else in the
        last report."""
        assert self._services is not None
        rates: dict[str, dict[int, float]] = {}
        for name, one in self._services.items():
            requests = reports = 0
            for site, report in told.get(name, {}).items():
                heard = one.heard.get(site, _Heard())
                requests += report.requests - heard.requests
                reports += report.reports - heard.reports
                fresh = report.seconds > heard.seconds
                rate = (report.requests - heard.requests) / (report.seconds - heard.seconds) if fresh else report.rate
                rates.setdefault(name, {})[site] = rate
                one.news |= fresh
                one.heard[site] = _Heard(report.requests, report.seconds, report.reports)
            self.reconfigurer.count(_keys([name]), np.array([requests]), np.array([reports]))
        return rates

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
        told = self._store.told()
        rates = self._listen(told)
        ids = tuple(engine.sites.tolist())
        capacity = [0.0 if site in out else self.settings.capacity.get(site, 0.0) for site in ids]
        rtts = distances(engine)
        demands = {name: found for name in self._names if (found := demand(told.get(name, {}), rates.get(name, {}), rtts))}
        if not demands:
            return {}
        names = list(demands)
        keys = _keys(names)
        planner = Engine(Sites.of(capacity, rtts, ids=ids), parameters_of(self.settings))
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
        due = self.reconfigurer.decide(keys, active, wanted)
        documents = {}
        for name, key, now_at, shall, moved, why in zip(names, keys, active, wanted, due, whys, strict=True):
            have = after.get(name) or moves.begin([ids[i] for i in np.flatnonzero(now_at)], now)
            if moved:
                after[name] = moves.decide(have, [ids[i] for i in np.flatnonzero(shall)], now)
                self.counters.moves += int((now_at != shall).sum())
                log.info("placement: %s moves from %s to %s", name, sites_of(ids, now_at), sites_of(ids, shall))
            one = self._services[name]
            one.news = bool((now_at != shall).any()) and not moved
            since = int(self.reconfigurer.since(np.array([key], np.uint64))[0])
            prefixes = examples(engine, [region.region for region in why.regions])
            heard = {site: (h.requests, h.seconds, h.reports) for site, h in one.heard.items()}
            state = {"since": since, "news": one.news, "heard": heard}
            documents[name] = view(name, now, why, prefixes, plan.load, moved=bool(moved)) | state
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


def demand(told: Mapping[int, Told], rates: Mapping[int, float], rtts: np.typing.NDArray[np.float32]) -> dict[int, float]:
    """Handshakes a second by region, from the reports of all sites: each one's regions, at its rate. Those of regions from
    which no RTT is known are taken to be spread like the others; none if there are no others."""
    found: dict[int, float] = {}
    lost = 0.0
    for site, one in told.items():
        total = sum(one.regions.values())
        for region, share in one.regions.items():
            rate = rates[site] * share / total
            if region < len(rtts) and np.isfinite(rtts[region]).any():
                found[region] = found.get(region, 0.0) + rate
            else:
                lost += rate
    known = sum(found.values())
    return {region: rate * (1 + lost / known) for region, rate in found.items() if rate > 0}


def with_updates(rates: Mapping[int, float], updates: float) -> dict[int, tuple[float, float]]:
    """Updates are nobody's: spread like the rest they change no region's weight."""
    total = sum(rates.values())
    return {region: (rate, updates * rate / total) for region, rate in rates.items()}


def shortfall(load: Load) -> str:
    return (
        f"demand takes {load.reads + load.updates:.0f} handshakes a second, and mu of the sites' capacity is {load.budget:.0f}: "
        "each service has min_replicas; add capacity"
    )


def sites_of(ids: tuple[int, ...], flags: Flags) -> str:
    return " ".join(str(ids[i]) for i in np.flatnonzero(flags)) or "no site"


def _keys(names: list[str]) -> Keys:
    return np.array([record_key(name) for name in names], np.uint64)
