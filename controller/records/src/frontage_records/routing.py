# SPDX-License-Identifier: Apache-2.0
"""The choice of the site for a request (Auspice, section 1.2.2). Time is a parameter, so that simulations route as clients do.

Hashing gives a record's replica-controllers, which return its active replicas. The client caches them. A request goes to the nearest
active replica, and to the next one if that fails. When all have failed, or a site no longer has a replica, the client queries the
controllers again.
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
    """The parameters of routing."""

    controllers: int = 3
    """Replica-controllers per record (F)."""
    ttl: float = 60.0
    """Seconds for which cached active replicas are used: about a placement epoch."""
    deadline: float = 10.0
    """Seconds after which a request has failed (2.2.1). Until then, requests that no site has answered are repeated."""
    entries: int = 65_536
    """Records whose active replicas are cached; the least recently used are evicted first."""
    estimation: Estimation = DEFAULT_ESTIMATION

    def __post_init__(self) -> None:
        if self.controllers < 1 or self.entries < 1 or not (0 <= self.ttl < math.inf and 0 <= self.deadline < math.inf):
            raise ValueError("controllers and entries must be at least 1, ttl and deadline at least 0 seconds")


class Question(Enum):
    """The kind of message that a step sends."""

    ACTIVES = "actives"
    """A query for the record's active replicas, to a replica-controller."""
    REQUEST = "request"
    """The request itself."""


@dataclass(frozen=True, slots=True)
class Step:
    """The next message to send, and its site."""

    site: int
    question: Question
    timeout: float
    """Seconds to wait for the answer."""


class Router:
    """The routing state of one client."""

    def __init__(self, sites: Iterable[int], routing: Routing | None = None, ring: Ring | None = None):
        """``sites``: ids of all sites of the instance. ``ring``: their ring, if it exists already. Raises ValueError without sites."""
        self.routing = routing or Routing()
        self.latency = {site: Latency(self.routing.estimation) for site in sites}
        ring = ring or Ring(self.latency, self.routing.controllers)
        self._controllers = [ring.controllers(part) for part in range(PARTITIONS)]
        self._actives: OrderedDict[str, tuple[tuple[int, ...], float]] = OrderedDict()

    def controllers(self, guid: str) -> tuple[int, ...]:
        """Return the record's replica-controllers."""
        return self._controllers[partition(guid)]

    def actives(self, guid: str, now: float) -> tuple[int, ...]:
        """Return the cached active replicas at ``now`` seconds of a monotonic clock; none if unknown or too old."""
        if len(self.latency) == 1:
            return tuple(self.latency)
        known = self._actives.get(guid)
        if known is None or known[1] <= now:
            return ()
        self._actives.move_to_end(guid)
        return known[0]

    def learn(self, guid: str, sites: Iterable[int], now: float) -> None:
        """Cache the active replicas, as reported by a replica-controller or set by a move. Unknown sites are left out."""
        self._actives[guid] = tuple(site for site in sites if site in self.latency), now + self.routing.ttl
        self._actives.move_to_end(guid)
        if len(self._actives) > self.routing.entries:
            self._actives.popitem(last=False)

    def forget(self, guid: str) -> None:
        """Remove the record from the cache."""
        self._actives.pop(guid, None)

    def nearest(self, sites: Collection[int]) -> int | None:
        """Return the site with the smallest estimate, the first of equal ones; None without sites."""
        latency, best, least = self.latency, None, math.inf
        for site in sites:
            estimate = latency[site].estimate
            if best is None or estimate < least:
                best, least = site, estimate
        return best

    def route(self, guid: str, now: float) -> Route:
        """Return the route of a request from site to site."""
        return Route(self, guid, now)


class Route:
    """The route of one request: take `step`, send it, report its outcome, until the request is answered or `step` returns None."""

    def __init__(self, router: Router, guid: str, now: float):
        self.router = router
        self.guid = guid
        self._left = list(router.actives(guid, now))
        self._controllers = list(router.controllers(guid))
        self._failed: set[int] = set()
        self.is_fresh = len(router.latency) == 1
        """Whether the active replicas were queried for this request, and not taken from the cache."""
        self._question = Question.REQUEST if self._left else Question.ACTIVES

    def step(self) -> Step | None:
        """Return the next step: the nearest site that has not failed yet; None if none is left."""
        asked = self._left if self._question is Question.REQUEST else self._controllers
        site = self.router.nearest(asked)
        if site is None and self._question is Question.REQUEST and len(self.router.latency) > 1:
            # The cached active replicas may be stale.
            self._query_again()
            site = self.router.nearest(self._controllers)
        return None if site is None else Step(site, self._question, self.router.latency[site].timeout)

    def on_answer(self, step: Step, took: float | None = None) -> None:
        """Note an answer after ``took`` seconds; None if other sites contributed to the duration."""
        self.router.latency[step.site].answered(took)

    def on_replicas(self, step: Step, sites: Sequence[int], now: float) -> None:
        """Note the active replicas named by a replica-controller. Without any, the record does not exist: its controllers create it."""
        self._controllers.remove(step.site)
        self.is_fresh = True
        sites = sites or self.router.controllers(self.guid)
        self.router.learn(self.guid, sites, now)
        self._left = [site for site in sites if site in self.router.latency and site not in self._failed]
        self._question = Question.REQUEST

    def on_failure(self, step: Step) -> None:
        """Note a failure: the site is backed off, and the next nearest is tried."""
        self.router.latency[step.site].timed_out()
        self._failed.add(step.site)
        self._drop(step.site)

    def on_missing(self, step: Step) -> None:
        """Note that the site has no active replica of the record: the cache is stale, and the controllers are queried."""
        self._failed.add(step.site)
        self._query_again()

    def _query_again(self) -> None:
        self.router.forget(self.guid)
        self._left, self._question = [], Question.ACTIVES

    def _drop(self, site: int) -> None:
        for those in (self._left, self._controllers):
            if site in those:
                those.remove(site)
