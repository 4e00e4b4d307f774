# SPDX-License-Identifier: Apache-2.0
"""Measures of flows, compared with small examples calculated by hand."""

import polars as pl
import pytest
from matplotlib.figure import Figure

from frontage_sim.comparison import compare, with_short_flows
from frontage_sim.figures import Result
from frontage_sim.measures import LONG_MEAN, SHORT_MEAN, SHORT_P99, active, shares, short_percentile, summary, variance
from frontage_sim.results import against, over_seeds, per_seed

FLOWS = pl.DataFrame(
    {
        "server": ["a", "a", "b"],
        "size": [100_000, 100_001, 1_000_001],
        "start": [0, 10, 20],
        "end": [30, 40, 1_000_020],
    }
)


def test_active_counts_flows_of_each_server() -> None:
    assert active(FLOWS, []).select("time", "server", "active").rows() == [
        (0, "a", 1),
        (10, "a", 2),
        (20, "b", 1),
        (30, "a", 1),
        (40, "a", 0),
        (1_000_020, "b", 0),
    ]


def test_variance_over_all_servers() -> None:
    spread = variance(FLOWS, [], servers=2)
    # (1,0) (2,0) (2,1) (1,1) (0,1) (0,0)
    assert spread["variance"].to_list() == pytest.approx([0.25, 1, 0.25, 0, 0.25, 0])
    assert spread["duration"].to_list() == [10, 10, 10, 10, 999_980, 0]


def test_variance_includes_servers_without_flows() -> None:
    assert variance(FLOWS, [], servers=4)["variance"][0] == pytest.approx(1 / 4 - 1 / 16)


def test_shares_are_weighted_by_duration() -> None:
    spread = pl.DataFrame({"policy": ["x"] * 4, "variance": [3.0, 1.0, 2.0, 1.0], "duration": [10, 30, 40, 20]})
    assert shares(spread, ["policy"]).select("variance", "share").rows() == [(1.0, 0.3), (1.0, 0.5), (2.0, 0.9), (3.0, 1.0)]
    assert summary(spread, ["policy"]).row(0, named=True) == {"policy": "x", "mean": 1.6, "median": 1.0, "90 %": 2.0, "99 %": 3.0}


def test_completion_times_depend_on_size_class() -> None:
    measures = FLOWS.select(SHORT_MEAN.alias("mean"), SHORT_P99.alias("p99"), LONG_MEAN.alias("long")).row(0)
    assert measures == pytest.approx((30e-6, 30e-6, 1.0))


def test_confidence_interval_is_over_seeds() -> None:
    frame = pl.DataFrame({"policy": ["x"] * 4, "seed": [1, 1, 2, 2], "value": [1.0, 3.0, 4.0, 6.0]})
    summary_row = over_seeds(frame, ["policy"], pl.col("value").mean()).row(0, named=True)
    assert summary_row["mean"] == pytest.approx(3.5)
    # Means of the seeds 2 and 5: deviation 2.1213, t(0.975, 1) = 12.706.
    assert summary_row["half_width"] == pytest.approx(12.706 * 2.12132 / 2**0.5, rel=1e-4)


PAIRED = pl.DataFrame(
    {
        "load": ["0.5"] * 4 + ["0.8"] * 4,
        "policy": ["x", "y"] * 4,
        "seed": [1, 1, 2, 2] * 2,
        "value": [2.0, 3.0, 10.0, 15.0, 4.0, 2.0, 8.0, 4.0],
    }
)


def test_common_variation_of_seeds_does_not_widen_comparison() -> None:
    each = per_seed(PAIRED, ["load", "policy"], pl.col("value").mean())
    assert against(each, ["load", "policy"], {"policy": "x"})["value"].to_list() == [1, 1.5, 1, 1.5, 1, 0.5, 1, 0.5]
    table = compare({"value (ms)": each}, "policy", "load", {"policy": "x"}).table
    assert table.columns == ["load", "policy", "value (ms)", "value, ratio to x"]
    assert table.rows()[1] == ("0.5", "y", 9.0, "1.5 ± 0.0")


def test_percentile_needs_a_hundred_flows_beyond_it() -> None:
    """Two seeds with 5,000 short flows each have 100 flows beyond the 99th percentile; long flows do not count."""
    ends = [1_000_000 * n for n in range(1, 5001)]
    flows = pl.concat(
        pl.DataFrame({"size": size, "start": 0, "end": ends[:count], "load": load, "seed": seed})
        for load, count in (("enough", 5000), ("few", 4999))
        for seed in (1, 2)
        for size in (100_000, 100_001)
    )
    rows = short_percentile(flows, ["load"], 99).rows()
    assert [(load, seed) for load, seed, _ in rows] == [("enough", 1), ("enough", 2)]
    assert all(value == pytest.approx(4950, abs=1) for *_, value in rows)
    assert {load for load, *_ in short_percentile(flows, ["load"], 50).rows()} == {"enough", "few"}


def test_table_shows_number_of_short_flows() -> None:
    result = with_short_flows(Result(pl.DataFrame({"server": ["b", "a"]}), Figure()), FLOWS, ["server"])
    assert result.table.rows() == [("b", 0), ("a", 1)]
