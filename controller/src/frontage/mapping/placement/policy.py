"""When demand is reported and replicas are moved, so that both stay a small share of the requests (Auspice, section 1.2.5).

An active replica reports at most once per m requests for the record that it has served, and only if these come from elsewhere than
those it reported last. A record is reconfigured at most once per k*m requests, k being its active replicas. The messages of both
are counted, and a reconfiguration waits until they are at most `share` of the record's requests: so they are of all requests.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from frontage.mapping.placement.records import Records
from frontage.mapping.placement.values import Flags, Keys, PlacementError, Rows, Totals


@dataclass(frozen=True, slots=True)
class Policy:
    """Bounds on overhead."""

    requests: int = 300
    """m: of a record at a replica, for one report."""
    moved: float = 0.1
    """The share of requests that come from other regions than before (total variation), from which on demand is reported."""
    share: float = 0.036
    """Messages by requests, at most. The paper measured 0.036."""
    controllers: int = 3
    """F: the replica-controllers of a record."""

    def __post_init__(self) -> None:
        for good, what in (
            (self.requests >= 1, "requests is less than 1"),
            (0 <= self.moved <= 1, "moved is not from 0 to 1"),
            (self.controllers >= 1, "controllers is less than 1"),
            (self.share * self.requests > 1, "share leaves nothing for reconfigurations: it is not above 1 / requests"),
        ):
            if not good:
                raise PlacementError(what)

    def reports(self, served: Rows, before: Totals, now: Totals) -> Flags:
        """Which replicas report: ``served`` are the requests since each one's last report, ``before`` and ``now`` their rates in
        that and since by [replica, region]."""
        found: Flags = (served >= self.requests) & (moved(before, now) >= self.moved)
        return found

    def messages(self, active: Flags, wanted: Flags) -> Rows:
        """Of a reconfiguration, by [record, site] before and after: accept, accepted and commit among the controllers, to decide
        and once more when all is done; stop and stopped of each old replica, start and started of each new one; and what a site
        that had none asks of one that had, and gets (steps 2 to 5)."""
        added = (wanted & ~active).sum(axis=1)
        found: Rows = 6 * (self.controllers - 1) + 2 * (active.sum(axis=1) + wanted.sum(axis=1) + added)
        return found

    def needed(self, active: Flags, wanted: Flags) -> Rows:
        """Requests for a record between its last reconfiguration and this one. Reports have their 1 / m of the share already."""
        paid = np.ceil(self.messages(active, wanted) / (self.share - 1 / self.requests))
        found: Rows = np.maximum(active.sum(axis=1) * self.requests, paid.astype(np.int64))
        return found


@dataclass(slots=True)
class Overhead:
    """What was counted."""

    requests: int = 0
    reports: int = 0
    reconfigurations: int = 0
    messages: int = 0
    """Reports included."""

    @property
    def share(self) -> float:
        return self.messages / self.requests if self.requests else 0.0


@dataclass(slots=True)
class Reconfigurer:
    """Who may be reconfigured, from counts of requests."""

    policy: Policy
    overhead: Overhead = field(default_factory=Overhead)
    _records: Records = field(default_factory=Records)
    _since: Rows = field(default_factory=lambda: np.empty(0, np.int64))

    def count(self, keys: Keys, requests: Rows, reports: Rows) -> None:
        """Requests for these records in an epoch, and reports from their replicas."""
        rows = self._records.add(keys)
        self._since = np.concatenate([self._since, np.zeros(len(self._records.keys) - len(self._since), np.int64)])
        self._since[rows] += requests
        self.overhead.requests += int(requests.sum())
        self.overhead.reports += int(reports.sum())
        self.overhead.messages += int(reports.sum())

    def since(self, keys: Keys) -> Rows:
        """Requests since each record's last reconfiguration; 0 of unknown ones."""
        rows = self._records.find(keys)
        found = np.zeros(len(keys), np.int64)
        found[rows >= 0] = self._since[rows[rows >= 0]]
        return found

    def decide(self, keys: Keys, active: Flags, wanted: Flags) -> Flags:
        """Which of these records are reconfigured now, [record, site]. The others may be at a later epoch, when they have had the
        requests for it."""
        due: Flags = (active != wanted).any(axis=1) & (self.since(keys) >= self.policy.needed(active, wanted))
        rows = self._records.find(keys[due])
        self._since[rows] = 0
        self.overhead.reconfigurations += int(due.sum())
        self.overhead.messages += int(self.policy.messages(active[due], wanted[due]).sum())
        return due

    def forget(self, keys: Keys) -> None:
        """These records are gone."""
        rows = self._records.find(keys)
        rows = rows[rows >= 0]
        self._since[rows] = 0
        self._records.remove(rows)


def moved(before: npt.ArrayLike, now: npt.ArrayLike) -> Totals:
    """Half the sum of differences between the regions' shares, by line: 0 if they are the same, 1 if no region is in both. A line
    that was empty has moved wholly."""
    shares = []
    for rates in (before, now):
        numbers = np.asarray(rates, np.float64)
        total = numbers.sum(axis=1, keepdims=True)
        shares.append(np.divide(numbers, total, out=np.zeros_like(numbers), where=total > 0))
    found: Totals = np.maximum(np.abs(shares[1] - shares[0]).sum(axis=1) / 2, np.abs((shares[1] - shares[0]).sum(axis=1)))
    return found
