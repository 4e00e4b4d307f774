# SPDX-License-Identifier: Apache-2.0
"""The page of QDSR's figures: values computed from measurements."""

from __future__ import annotations

from pathlib import Path

import pytest

from frontage_demo.handoff import page
from frontage_demo.handoff.measure import (
    DISTANT_PROXY,
    FAST_OWDS,
    FORMS,
    LOSSES,
    OWDS,
    PARALLEL,
    PARALLEL_SIZES,
    Result,
    pair_delays,
)
from frontage_demo.handoff.testbed import ONE_PATH


def result() -> Result:
    measured = Result()
    for name in OWDS:
        measured.first_ms[name] = {form: [60.0, 64.0] for form in FORMS}
    for size in PARALLEL_SIZES:
        for parallel in PARALLEL:
            measured.requests[f"{size} x {parallel}"] = dict(zip(FORMS, (100.0, 118.5), strict=True))
    measured.downlink_ms["0"] = dict(zip(FORMS, ([0.2, 0.4, 0.2], [0.1]), strict=True))
    for loss in LOSSES:
        measured.rates[str(loss)] = dict.fromkeys((*FORMS, DISTANT_PROXY), 10.0)
    for name in FAST_OWDS:
        measured.fast[name] = dict.fromkeys((*FORMS, ONE_PATH), 90.0)
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
        listed += [row(f"qdsr_{size}KiB_throughput", 160, "proxy", 80)]
        listed += [row(f"qdsr_{size}KiB_share{end}", 200) for end in ("", "_low", "_high")]
    return {row["name"]: row for row in listed}


def test_departure_is_paired_with_first_later_arrival() -> None:
    # One arrival precedes all departures, and one is between two.
    assert list(pair_delays([1.0, 2.0, 9.0], [0.5, 1.25, 2.5, 2.75])) == [250.0, 500.0]


@pytest.mark.parametrize("bench", [rows(), {}])
def test_page_contains_measurements(tmp_path: Path, bench: dict[str, page.Row]) -> None:
    path = page.write(result(), bench, tmp_path)
    text = path.read_text()
    assert "| 0 | 0.200 ms | 0.100 ms | -50.0 % |" in text
    assert "| both | 15.00 Mbit/s | 5.00 Mbit/s | 75 % | 0.80 |" in text
    assert "| 1 % | 10.00 Mbit/s | 3.43 | 10.00 Mbit/s | 2.29 | +0.0 % | 10.00 Mbit/s | +0.0 % |" in text
    assert "| 1, 1, 1 | 90.0 Mbit/s | 90.0 Mbit/s | 90.0 Mbit/s |" in text
    assert ("| 15,000 |" in text) is bool(bench)
    assert text.count("+18.5 %") == len(PARALLEL) * len(PARALLEL_SIZES)
    assert ("**13.0 times**" in text) is bool(bench)
    for drawing in ("figure9", "figure13", *(["figure7"] if bench else [])):
        assert f"qdsr/{drawing}.svg" in text
        assert (path.parent / "qdsr" / f"{drawing}.svg").read_text().count("<svg ") == 1
