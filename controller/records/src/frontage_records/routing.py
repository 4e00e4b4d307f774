"""Which site a request for a record is sent to (Auspice, section 1.2.2): pure, with time passed in, so that
simulations route as clients do.

A record's replica-controllers are found by hashing and say where its active replicas are, which is kept for a while. A request
goes to the nearest of these, and where that fails to the next; when all have failed, or one is none any longer, the controllers are
asked anew.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from frontage_records.latency import DEFAULT_ESTIMATION, Estimation, Latency
from frontage_records.ring import PARTITIONS, Ring, partition


@dataclass(frozen=True, slots=True)
class Routing:
    controllers: int = 3
    """Of each record (F)."""
    ttl: float = 60.0
    """Seconds for which a set of active replicas is used: about an epoch of placement."""
    entries: int = 65_536
    """Records whose active replicas are kept; the least recently used go first."""
    estimation: Estimation = DEFAULT_ESTIMATION

    def __post_init__(self) -> None:
        if self.controllers < 1 or self.entries < 1 or not 0 <= self.ttl < math.inf:
            raise ValueError("controllers and entries are at least 1, and ttl is from 0 seconds up")


class Question(Enum):
    ACTIVES = "actives"
    """Where the record's active replicas are."""
    REQUEST = "request"
    """The request itself."""


@dataclass(frozen=True, slots=True)
class Step:
    """What to send next, and where."""

    site: int
    question: Question
    timeout: float
    """Seconds to wait for the answer."""


class Router:
    """Of one client."""

    def __init__(self, sites: Iterable[int], routing: Routing | None = None, ring: Ring | None = None):
        """``sites``: ids of all sites of the instance; ``ring``: theirs, if it is there already.
        Raises ValueError if there is no site."""
        self.routing = routing or Routing()
        self.latency = {site: Latency(self.routing.estimation) for site in sites}
        ring = ring or Ring(self.latency, self.routing.controllers)
        self._controllers = [ring.controllers(part) for part in range(PARTITIONS)]
        self._actives: OrderedDict[str, tuple[tuple[int, ...], float]] = OrderedDict()

    def controllers(self, guid: str) -> tuple[int, ...]:
        return self._controllers[partition(guid)]

    def actives(self, guid: str, now: float) -> tuple[int, ...]:
        """What is known of the record's active replicas at ``now`` seconds of any one clock; nothing if that is too old."""
        if len(self.latency) == 1:
            return tuple(self.latency)
        known = self._actives.get(guid)
        if known is None or known[1] <= now:
            return ()
        self._actives.move_to_end(guid)
        return known[0]

    def learn(self, guid: str, sites: Iterable[int], now: float) -> None:
        """The record's active replicas, from a replica-controller or whoever moved it. Sites that are not the
        instance's are left out."""
        self._actives[guid] = tuple(site for site in sites if site in self.latency), now + self.routing.ttl
        self._actives.move_to_end(guid)
        if len(self._actives) > self.routing.entries:
            self._actives.popitem(last=False)

    def forget(self, guid: str) -> None:
        self._actives.pop(guid, None)

    def nearest(self, sites: Collection[int]) -> int | None:
        """By estimate; of equal ones, and of those of which nothing is known, the first. None of none."""
        latency, best, least = self.latency, None, math.inf
        for site in sites:
            estimate = latency[site].estimate
            if best is None or estimate < least:
                best, least = site, estimate
        return best

    def way(self, guid: str, now: float) -> Way:
        """A request's way from site to site."""
        return Way(self, guid, now)


class Way:
    """Ask for `step`, send what it says, tell what came of it; until a request was answered, or `step` is None: nobody is left."""

    def __init__(self, router: Router, guid: str, now: float):
        self.router = router
        self.guid = guid
        self._left = list(router.actives(guid, now))
        self._controllers = list(router.controllers(guid))
        self._failed: set[int] = set()
        self.fresh = len(router.latency) == 1
        """Whether where the record is was asked on this way, not remembered."""
        self._question = Question.REQUEST if self._left else Question.ACTIVES

    def step(self) -> Step | None:
        """The nearest of those who have not failed yet."""
        asked = self._left if self._question is Question.REQUEST else self._controllers
        site = self.router.nearest(asked)
        if site is None and self._question is Question.REQUEST and len(self.router.latency) > 1:
            # What is known of the active replicas may be what is wrong.
            self._anew()
            site = self.router.nearest(self._controllers)
        return None if site is None else Step(site, self._question, self.router.latency[site].timeout)

    def answered(self, step: Step, took: float | None = None) -> None:
        """By the site, after ``took`` seconds; None if that says nothing of the site, since others had a part in it."""
        self.router.latency[step.site].answered(took)

    def named(self, step: Step, sites: Sequence[int], now: float) -> None:
        """A replica-controller named the active replicas; none of them, if the record is not there: then it is the controllers'."""
        self._controllers.remove(step.site)
        self.fresh = True
        sites = sites or self.router.controllers(self.guid)
        self.router.learn(self.guid, sites, now)
        self._left = [site for site in sites if site in self.router.latency and site not in self._failed]
        self._question = Question.REQUEST

    def failed(self, step: Step) -> None:
        """No answer in time, or none of use: the site is backed off, and the next nearest asked."""
        self.router.latency[step.site].timed_out()
        self._failed.add(step.site)
        self._drop(step.site)

    def elsewhere(self, step: Step) -> None:
        """The site has no active replica of the record: what is known of these is stale, and is asked anew."""
        self._failed.add(step.site)
        self._anew()

    def _anew(self) -> None:
        self.router.forget(self.guid)
        self._left, self._question = [], Question.ACTIVES

    def _drop(self, site: int) -> None:
        for those in (self._left, self._controllers):
            if site in those:
                those.remove(site)
