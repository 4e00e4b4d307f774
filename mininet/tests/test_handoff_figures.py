# SPDX-License-Identifier: Apache-2.0
"""The page of QDSR's figures: values computed from measurements."""

from __future__ import annotations

from pathlib import Path

import pytest

from frontage_demo.handoff import connections, page, rates
from frontage_demo.handoff import single_path as paths
from frontage_demo.handoff.connections import median_interval
from frontage_demo.handoff.early import KINDS, TOPOLOGIES, FirstBytes
from frontage_demo.handoff.latency import Latency, pair_delays
from frontage_demo.handoff.measure import DISTANT_PROXY, LOSSES, PARALLEL, PARALLEL_SIZES, Result
from frontage_demo.handoff.single_path import SinglePath
from frontage_demo.handoff.testbed import FORMS, ONE_PATH, PROXY
from frontage_demo.handoff.topology import OWDS
from frontage_testbed.reporting.templates import PageTemplate

TEMPLATE = PageTemplate("qdsr")


def first_bytes(proxy: float, handed: float) -> dict[str, FirstBytes]:
    by_form = dict(zip(FORMS, ([proxy - 1, proxy, proxy + 1], [handed] * 3), strict=True))
    return {name: dict.fromkeys(KINDS, by_form) for name in TOPOLOGIES}


def single_path(ours: float) -> SinglePath:
    rates = {name: dict.fromkeys(FORMS, 90.0) | {ONE_PATH: ours} for name in paths.OWDS}
    return SinglePath(rates, {"30 ms, 1 %": {PROXY: 2.0, ONE_PATH: 2.1}})


def result() -> Result:
    measured = Result()
    for name in OWDS:
        measured.first_ms[name] = {form: [60.0, 64.0] for form in FORMS}
    measured.early = first_bytes(40.0, 30.0)
    for size in PARALLEL_SIZES:
        for parallel in PARALLEL:
            measured.requests[f"{size} x {parallel}"] = dict(zip(FORMS, (100.0, 118.5), strict=True))
    latencies = (Latency([0.3] * 3, [0.2, 0.4, 0.2], 1_200.0), Latency([0.3], [0.1], 900.0))
    measured.latency["0"] = dict(zip(FORMS, latencies, strict=True))
    for loss in LOSSES:
        measured.rates[str(loss)] = dict.fromkeys((*FORMS, DISTANT_PROXY), 10.0)
    measured.single_path = single_path(90.0)
    measured.shares["both"] = (15.0, 5.0)
    return measured


def rows() -> dict[str, page.Row]:
    def row(name: str, value: float, peer: str | None = None, peer_value: float | None = None) -> page.Row:
        ratio = value / peer_value if peer_value else None
        return {"name": name, "value": value, "unit": "", "peer": peer, "peer_value": peer_value, "ratio": ratio}

    listed = [row("qdsr_maximum_throughput", 26_000, "proxy", 2_000)]
    for size in (1, 1024):
        listed += [row(f"qdsr_{size}KiB_requests", 20_000, "proxy", 10_000)]
        listed += [row(f"qdsr_{size}KiB_requests_one_path", 15_000, "proxy", 10_000)]
        listed += [row(f"qdsr_{size}KiB_requests_per_connection", 16_000, "proxy", 10_000)]
        listed += [row(f"qdsr_{size}KiB_throughput", 160, "proxy", 80)]
        listed += [row(f"qdsr_{size}KiB_share{end}", 200) for end in ("", "_low", "_high")]
        listed += [row(f"qdsr_cpu_{size}KiB_{name}", 10.0, "proxy", 20.0) for name in page.FUNCTIONS]
    return {row["name"]: row for row in listed}


def test_departure_is_paired_with_first_later_arrival() -> None:
    # One arrival precedes all departures, and one is between two.
    assert list(pair_delays([1.0, 2.0, 9.0], [0.5, 1.25, 2.5, 2.75])) == [250.0, 500.0]


@pytest.mark.parametrize("bench", [rows(), {}])
def test_page_contains_measurements(tmp_path: Path, bench: dict[str, page.Row]) -> None:
    path = page.write(result(), bench, tmp_path)
    text = path.read_text()
    delays = "0.500 ms | 0.400 ms | -20.0 % | 0.300 ms | 0.300 ms | +0.0 % | 0.200 ms | 0.100 ms | -50.0 %"
    assert f"| 0 | {delays} | 1,200 | 900 |" in text
    assert "| both | 15.00 Mbit/s | 5.00 Mbit/s | 75 % | 0.80 |" in text
    assert "| 1 % | 10.00 Mbit/s | 3.43 | 10.00 Mbit/s | 2.29 | +0.0 % | 10.00 Mbit/s | +0.0 % |" in text
    assert "| 1, 1, 1 | 90.0 Mbit/s | 90.0 Mbit/s | 90.0 Mbit/s | +0.0 % |" in text
    assert "| 30 ms, 1 % | 2.0 Mbit/s | 2.1 Mbit/s | +5.0 % |" in text
    assert "| 10 ms: 10, 1, 10 | 0-RTT | 40.0 ms (39.0 to 41.0) | 30.0 ms (30.0 to 30.0) | -25.0 % |" in text
    assert ("| 15,000 | 16,000 |" in text) is bool(bench)
    assert text.count("+18.5 %") == len(PARALLEL) * len(PARALLEL_SIZES)
    assert ("**13.0 times**" in text) is bool(bench)
    cells = " | ".join(["20.0"] * len(page.FUNCTIONS))
    assert (f"| 1 KiB | proxy | {cells} | 140.0 |" in text) is bool(bench)
    assert ("`make bench ONLY=qdsr-cpu`.\n\n## Figure 9" in text) is not bool(bench)
    for drawing in ("figure9", "figure13", *(["figure7"] if bench else [])):
        assert f"qdsr/{drawing}.svg" in text
        assert (path.parent / "qdsr" / f"{drawing}.svg").read_text().count("<svg ") == 1


def test_renewal_replaces_only_the_section_about_new_connections(tmp_path: Path) -> None:
    before = page.write(result(), {}, tmp_path).read_text()
    after = page.renew(connections.section(TEMPLATE, first_bytes(40.0, 20.0)), tmp_path).read_text()
    assert after == before.replace("30.0 ms (30.0 to 30.0) | -25.0 %", "20.0 ms (20.0 to 20.0) | -50.0 %") != before


def test_renewal_replaces_only_the_section_about_single_path_clients(tmp_path: Path) -> None:
    before = page.write(result(), {}, tmp_path).read_text()
    after = page.renew(rates.single_path_section(TEMPLATE, single_path(45.0)), tmp_path).read_text()
    assert after == before.replace("90.0 Mbit/s | +0.0 % |", "45.0 Mbit/s | -50.0 % |") != before


def test_median_interval_reaches_confidence() -> None:
    # With 25 values, ranks 8 and 18 have 95.67 %; ranks 9 and 17 have 89.2 %. Five values cannot reach 95 %.
    assert median_interval(range(1, 26)) == (8, 18)
    assert median_interval([3.0, 1.0, 2.0, 5.0, 4.0]) == (1.0, 5.0)
