# SPDX-License-Identifier: Apache-2.0
"""The results of a policy's run: flow completion times, failures, and how evenly the servers were loaded."""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, pvariance

from frontage_testbed.datacentre.settings import Treatment
from frontage_testbed.load.outcome import Outcome
from frontage_testbed.load.workload import LONG_FLOW, SHORT_FLOW, Arrival

SAMPLE_INTERVAL = 0.05
"""Seconds between samples of the servers' active flows."""


@dataclass(frozen=True)
class ActiveFlows:
    """Number of active flows of each server over time."""

    servers: tuple[str, ...]
    times: tuple[float, ...]
    """Seconds since the start of the run."""
    counts: tuple[tuple[int, ...], ...]
    """One row per sample, one column per server."""

    def variances(self, until: float) -> list[float]:
        """Return the population variance across the servers for each sample up to `until` seconds."""
        return [pvariance(row) for t, row in zip(self.times, self.counts, strict=True) if 0 <= t <= until]


@dataclass(frozen=True)
class PolicyRun:
    """All measurements of one run."""

    treatment: Treatment
    outcomes: tuple[Outcome, ...]
    active: ActiveFlows
    """Counted by the servers' agents."""
    drops: Mapping[str, int] = field(default_factory=dict)
    """Packets that the edge switch dropped, by reason."""
    refusals: Mapping[str, int] = field(default_factory=dict)
    """Packets that AIFO dropped, by the smallest remaining processing time of a rank band in microseconds."""
    steering: Mapping[str, int] = field(default_factory=dict)
    """Packets to and from the VIPs, by how the edge switch found their server."""
    retransmitted: int | None = None
    """Segments that the servers retransmitted; None if they do not report it."""
    cpu: Mapping[str, float] = field(default_factory=dict)
    """Average number of cores in use while requests arrived, by part of the testbed."""

    @property
    def name(self) -> str:
        """Name for tables."""
        return self.treatment.name


@dataclass(frozen=True)
class Summary:
    """The results of one run in numbers. Times are seconds; None where no flow of the kind finished."""

    requests: int
    failures: int
    failure_reasons: Mapping[str, int]
    short_flows: int
    short_mean: float | None
    short_p99: float | None
    long_flows: int
    long_mean: float | None
    all_mean: float | None
    variance: float | None
    """Mean over time of the variance across servers of the number of active flows."""
    variance_of_requests: float
    """Variance across servers of the number of requests that each answered."""
    retransmitted: int | None
    """Segments that the servers retransmitted; None if they do not report it."""
    latest_start: float
    """Maximum delay of a request's start after its planned time."""

    def as_dict(self) -> dict[str, object]:
        """Return the entry for `result.json`."""
        return {
            "requests": self.requests,
            "failures": self.failures,
            "failure_reasons": dict(self.failure_reasons),
            "flows_up_to_100KB": {
                "flows": self.short_flows,
                "mean_fct_s": self.short_mean,
                "p99_fct_s": self.short_p99,
            },
            "flows_above_1MB": {"flows": self.long_flows, "mean_fct_s": self.long_mean},
            "mean_fct_s": self.all_mean,
            "variance_over_servers": {
                "active_flows": self.variance,
                "requests": self.variance_of_requests,
            },
            "retransmitted_segments": self.retransmitted,
            "latest_start_s": self.latest_start,
        }


def percentile(values: Sequence[float], p: float) -> float | None:
    """Return the smallest value that at least the share `p` of the values does not exceed (nearest rank)."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, math.ceil(p * len(ordered)) - 1)]


def mean(values: Sequence[float]) -> float | None:
    """Return the arithmetic mean; None without values."""
    return fmean(values) if values else None


def short_fcts(plan: Sequence[Arrival], outcomes: Sequence[Outcome]) -> list[float]:
    """Return the completion times of short flows that completed."""
    return [o.fct for o in outcomes if o.ok and plan[o.index].size <= SHORT_FLOW]


def long_fcts(plan: Sequence[Arrival], outcomes: Sequence[Outcome]) -> list[float]:
    """Return the completion times of long flows that completed."""
    return [o.fct for o in outcomes if o.ok and plan[o.index].size > LONG_FLOW]


def summarise(plan: Sequence[Arrival], run: PolicyRun, seconds: float) -> Summary:
    """Summarise a run. A request of the plan without an outcome counts as failed."""
    reasons = Counter(o.outcome for o in run.outcomes if not o.ok)
    if lost := len(plan) - len(run.outcomes):
        reasons["unreported"] = lost
    short, long = short_fcts(plan, run.outcomes), long_fcts(plan, run.outcomes)
    answered = Counter(o.server for o in run.outcomes if o.ok)
    return Summary(
        requests=len(plan),
        failures=sum(reasons.values()),
        failure_reasons=dict(reasons),
        short_flows=len(short),
        short_mean=mean(short),
        short_p99=percentile(short, 0.99),
        long_flows=len(long),
        long_mean=mean(long),
        all_mean=mean([o.fct for o in run.outcomes if o.ok]),
        variance=mean(run.active.variances(seconds)),
        variance_of_requests=pvariance([answered[s] for s in run.active.servers]),
        retransmitted=run.retransmitted,
        latest_start=max((o.late for o in run.outcomes), default=0.0),
    )


def active_flows_seen_by_clients(servers: Sequence[str], outcomes: Sequence[Outcome], start_ns: int, seconds: float) -> ActiveFlows:
    """Return the active flows from the clients' view: a flow is active from its SYN to its last byte.

    This is independent of the servers' agents, so that each view checks the other.
    """
    begun = {s: sorted((o.started_ns - start_ns) / 1e9 for o in outcomes if o.server == s) for s in servers}
    ended = {s: sorted((o.finished_ns - start_ns) / 1e9 for o in outcomes if o.server == s) for s in servers}
    times = tuple(i * SAMPLE_INTERVAL for i in range(int(seconds / SAMPLE_INTERVAL) + 1))
    counts = tuple(tuple(bisect.bisect_right(begun[s], t) - bisect.bisect_right(ended[s], t) for s in servers) for t in times)
    return ActiveFlows(tuple(servers), times, counts)
