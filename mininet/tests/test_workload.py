# SPDX-License-Identifier: Apache-2.0
"""The workload: sizes, arrivals and their reproducibility."""

import itertools
from pathlib import Path

import pytest

from frontage_testbed.load import workload
from frontage_testbed.load.protocols import PROTOCOLS
from frontage_testbed.load.workload import Cdf

TCP = PROTOCOLS["tcp"].framing
ARGUMENTS = {"seed": 7, "seconds": 60.0, "load": 0.8, "rate": 160e6, "scale": 0.1, "clients": 4, "framing": TCP}


def test_websearch_cdf_is_the_published_one() -> None:
    cdf = workload.load_cdf()
    assert cdf.points[0] == (0, 0)
    assert cdf.points[-1] == (30_000_000, 1)
    assert (1_000_000, 0.70) in cdf.points
    assert cdf.mean() == pytest.approx(1.711e6, rel=0.01)


def test_representatives_keep_mean_and_order() -> None:
    cdf = workload.load_cdf()
    sizes = cdf.representatives()
    assert len(set(sizes)) == workload.SIZES
    assert sizes == sorted(sizes)
    assert sum(sizes) / len(sizes) == pytest.approx(cdf.mean(), rel=1e-5)


@pytest.mark.parametrize(
    "points",
    [
        ((0, 0),),
        ((0, 0.1), (1, 1)),
        ((0, 0), (1, 0.9)),
        ((0, 0), (9, 0.5), (1, 1)),
        ((0, 0), (1, 0.5), (2, 0.4), (3, 1)),
    ],
)
def test_malformed_cdf_is_rejected(points: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(ValueError, match="CDF"):
        Cdf(points)


def test_plan_depends_on_seed_only() -> None:
    assert workload.plan(**ARGUMENTS) == workload.plan(**ARGUMENTS)
    assert workload.plan(**ARGUMENTS) != workload.plan(**(ARGUMENTS | {"seed": 8}))


def test_plan_is_stable_across_versions() -> None:
    first = workload.plan(**(ARGUMENTS | {"seed": 1}))[0]
    assert (first.time, first.client, first.size, first.closing) == (0.001618, 3, 3_350_000, "rst")


def test_arrivals_offer_requested_load() -> None:
    arguments = ARGUMENTS | {"seconds": 2000.0}
    plan = workload.plan(**arguments)
    assert workload.offered_load(plan, 2000, 160e6, TCP) == pytest.approx(0.8, rel=0.03)


def test_interarrival_times_are_exponential() -> None:
    plan = workload.plan(**(ARGUMENTS | {"seconds": 500.0}))
    gaps = [b.time - a.time for a, b in itertools.pairwise(plan)]
    mean = sum(gaps) / len(gaps)
    variance = sum((g - mean) ** 2 for g in gaps) / len(gaps)
    assert variance == pytest.approx(mean**2, rel=0.1)


def test_arrivals_are_within_the_run_and_valid() -> None:
    plan = workload.plan(**ARGUMENTS)
    assert [a.index for a in plan] == list(range(len(plan)))
    assert all(0 <= a.time < 60 and 0 <= a.client < 4 and a.wire_size >= 1 for a in plan)
    closings = {name: sum(a.closing == name for a in plan) / len(plan) for name, _ in workload.CLOSINGS}
    assert closings == pytest.approx(dict(workload.CLOSINGS), abs=0.04)


def test_plan_survives_saving(tmp_path: Path) -> None:
    plan = workload.plan(**ARGUMENTS)
    workload.write_plan(plan, tmp_path / "plan.csv")
    assert workload.read_plan(tmp_path / "plan.csv") == plan


def test_headers_count_as_load() -> None:
    assert TCP.bytes_on_link(1448) - 1448 == TCP.header + TCP.per_flow
    assert TCP.bytes_on_link(1449) - 1449 == 2 * TCP.header + TCP.per_flow
