# SPDX-License-Identifier: Apache-2.0
"""The limits on load reports and reconfigurations that keep both a small share of the requests (Auspice, section 1.2.5).

An active replica reports at most once per m requests that it has served for the record, and only if they come from other regions than
those of its last report. A record is reconfigured at most once per k*m requests, where k is its number of active replicas. A
reconfiguration also waits until the messages of both are at most `share` of the record's requests, which bounds the share of all.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from frontage.mapping.placement.records import Records
from frontage.mapping.placement.values import Flags, Keys, PlacementError, Rows, Totals


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits on the overhead of placement."""

    requests: int = 300
    """m: requests for a record at a replica per report."""
    moved: float = 0.1
    """The share of requests from other regions than before (total variation) from which on demand is reported."""
    share: float = 0.036
    """Most messages per request. The paper measured 0.036."""
    controllers: int = 3
    """F: number of replica-controllers per record."""

    def __post_init__(self) -> None:
        for good, what in (
            (self.requests >= 1, "requests must be at least 1"),
            (0 <= self.moved <= 1, "moved must be from 0 to 1"),
            (self.controllers >= 1, "controllers must be at least 1"),
            (
                self.share * self.requests > 1,
                "share must be above 1 / requests: otherwise it leaves no messages for reconfigurations",
            ),
        ):
            if not good:
                raise PlacementError(what)

    def reports(self, served: Rows, before: Totals, now: Totals) -> Flags:
        """Return which replicas report.

        ``served``: the requests since each replica's last report. ``before`` and ``now``: the rates by [replica, region] in that
        report and since.
        """
        found: Flags = (served >= self.requests) & (moved(before, now) >= self.moved)
        return found

    def messages(self, active: Flags, wanted: Flags) -> Rows:
        """Return the number of messages of each record's reconfiguration from ``active`` to ``wanted`` sites [record, site].

        They are those of the paper's steps 2 to 5. Controllers exchange accept, accepted and commit twice: for the decision, and
        at the end. Each old replica gets a stop request and confirms it; each new one gets a start request and confirms it. Each
        new site requests the state from an old one and receives it.
        """
        added = (wanted & ~active).sum(axis=1)
        found: Rows = 6 * (self.controllers - 1) + 2 * (active.sum(axis=1) + wanted.sum(axis=1) + added)
        return found

    def needed(self, active: Flags, wanted: Flags) -> Rows:
        """Return the requests that a record needs between two reconfigurations. Reports use 1 / m of the share already."""
        paid = np.ceil(self.messages(active, wanted) / (self.share - 1 / self.requests))
        found: Rows = np.maximum(active.sum(axis=1) * self.requests, paid.astype(np.int64))
        return found


@dataclass(slots=True)
class Overhead:
    """Counts of requests, and of the messages that placement costs."""

    requests: int = 0
    reports: int = 0
    reconfigurations: int = 0
    messages: int = 0
    """Messages of reports and reconfigurations."""

    @property
    def share(self) -> float:
        """Messages per request."""
        return self.messages / self.requests if self.requests else 0.0


@dataclass(slots=True)
class Reconfigurer:
    """Decides from request counts which records may be reconfigured."""

    policy: Policy
    overhead: Overhead = field(default_factory=Overhead)
    _records: Records = field(default_factory=Records)
    _since: Rows = field(default_factory=lambda: np.empty(0, np.int64))

    def count(self, keys: Keys, requests: Rows, reports: Rows) -> None:
        """Add the requests for these records in an epoch, and the reports from their replicas."""
        rows = self._records.add(keys)
        self._since = np.concatenate([self._since, np.zeros(len(self._records.keys) - len(self._since), np.int64)])
        self._since[rows] += requests
        self.overhead.requests += int(requests.sum())
        self.overhead.reports += int(reports.sum())
        self.overhead.messages += int(reports.sum())

    def since(self, keys: Keys) -> Rows:
        """Return the requests since each record's last reconfiguration; 0 for unknown records."""
        rows = self._records.find(keys)
        found = np.zeros(len(keys), np.int64)
        found[rows >= 0] = self._since[rows[rows >= 0]]
        return found

    def decide(self, keys: Keys, active: Flags, wanted: Flags) -> Flags:
        """Return which of these records are reconfigured now, from ``active`` to ``wanted`` sites [record, site].

        The others wait for a later epoch, until they have had enough requests.
        """
        due: Flags = (active != wanted).any(axis=1) & (self.since(keys) >= self.policy.needed(active, wanted))
        rows = self._records.find(keys[due])
        self._since[rows] = 0
        self.overhead.reconfigurations += int(due.sum())
        self.overhead.messages += int(self.policy.messages(active[due], wanted[due]).sum())
        return due

    def forget(self, keys: Keys) -> None:
        """Remove these records."""
        rows = self._records.find(keys)
        rows = rows[rows >= 0]
        self._since[rows] = 0
        self._records.remove(rows)


def moved(before: npt.ArrayLike, now: npt.ArrayLike) -> Totals:
    """Return by row the total variation distance between the regions' shares: 0 if they are equal, 1 if no region is in both.

    A row that was empty before has moved completely.
    """
    shares = []
    for rates in (before, now):
        numbers = np.asarray(rates, np.float64)
        total = numbers.sum(axis=1, keepdims=True)
        shares.append(np.divide(numbers, total, out=np.zeros_like(numbers), where=total > 0))
    found: Totals = np.maximum(np.abs(shares[1] - shares[0]).sum(axis=1) / 2, np.abs((shares[1] - shares[0]).sum(axis=1)))
    return found
