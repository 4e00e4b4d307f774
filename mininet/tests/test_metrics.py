# SPDX-License-Identifier: Apache-2.0
"""Statistics of outcomes, against values calculated by hand."""

from frontage_demo.metrics import ActiveFlows, PolicyRun, active_flows_seen_by_clients, percentile, summarise
from frontage_testbed.datacentre.settings import Treatment
from frontage_testbed.load.outcome import Outcome
from frontage_testbed.load.workload import Arrival

S = 1_000_000_000


def arrival(index: int, size: int) -> Arrival:
    return Arrival(index, 0.0, 0, size, size, "fin")


def outcome(index: int, start: float, end: float, server: str = "s1", result: str = "ok") -> Outcome:
    return Outcome(index, result, server, int(start * S), int(start * S), 0, 0, int(end * S), 0, 1000)


def test_percentile_is_the_nearest_rank() -> None:
    values = [float(v) for v in range(1, 101)]
    assert percentile(values, 0.99) == 99
    assert percentile(values, 1.0) == 100
    assert percentile([5.0], 0.99) == 5
    assert percentile([], 0.99) is None


def test_summary_equals_hand_calculation() -> None:
    plan = [
        arrival(0, 100_000),
        arrival(1, 100_001),
        arrival(2, 1_000_000),
        arrival(3, 1_000_001),
        arrival(4, 10),
        arrival(5, 10),
    ]
    outcomes = (
        outcome(0, 0, 2),
        outcome(1, 0, 50, "s2"),
        outcome(2, 0, 60, "s2"),
        outcome(3, 1, 8, "s2"),
        outcome(4, 0, 1, "s1", "ECONNRESET"),
    )
    active = ActiveFlows(("s1", "s2"), (0.0, 1.0, 99.0), ((0, 4), (1, 1), (0, 100)))
    summary = summarise(plan, PolicyRun(Treatment("hash"), outcomes, active), seconds=10)
    assert (summary.requests, summary.failures) == (6, 2)
    assert summary.failure_reasons == {"ECONNRESET": 1, "unreported": 1}
    assert (summary.short_flows, summary.short_mean, summary.short_p99) == (1, 2, 2)
    assert (summary.long_flows, summary.long_mean) == (1, 7)
    assert summary.variance == 2.0, "mean of 4 and 0; the sample after the run does not count"
    assert summary.variance_of_requests == 1.0, "one answered by s1, three by s2"


def test_outcome_survives_line_format() -> None:
    original = outcome(3, 1, 2)
    assert Outcome.from_line(original.to_line()) == original


def test_clients_view_counts_active_flows() -> None:
    outcomes = [outcome(0, 10.0, 10.2), outcome(1, 10.1, 10.15), outcome(2, 10.0, 10.1, "s2")]
    active = active_flows_seen_by_clients(["s1", "s2"], outcomes, 10 * S, 0.2)
    assert active.times == (0.0, 0.05, 0.1, 0.15000000000000002, 0.2)
    assert active.counts == ((1, 1), (1, 1), (2, 0), (1, 0), (0, 0))
