# SPDX-License-Identifier: Apache-2.0
"""The table of the measurement of health checks, and its place in the documentation."""

from pathlib import Path

import pytest

from frontage_demo.detection import table
from frontage_demo.detection.measure import Repetition, measure
from frontage_testbed.datacentre.faults import FAULTS
from frontage_testbed.programs import REPOSITORY
from frontage_testbed.sandbox import Sandbox
from testbeds import Sandboxed, deployment, needs_root, only_long


def found() -> dict[str, list[Repetition]]:
    repetitions = [Repetition(0.5, 0.01, 2, 40), Repetition(0.75, 0.02, 4, 40), Repetition(0.625, 0.015, 3, 40)]
    return dict.fromkeys(FAULTS, repetitions)


def test_table_has_median_and_worst_of_each_fault() -> None:
    lines = table.markdown(found()).splitlines()
    assert "| detected, worst of 3 |" in lines[5]
    assert "| status 503 | 0.62 s | 0.75 s | 0.02 s | 3 | 4 |" in lines
    assert len(lines) == 7 + len(FAULTS)


def test_table_replaces_the_one_before_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "health.md"
    page.write_text((REPOSITORY / "docs" / "health.md").read_text())
    table.write("first\n", page)
    before = page.read_text()
    table.write(table.markdown(found()), page)
    assert "| detected, worst of 3 |" in page.read_text()
    table.write("first\n", page)
    assert page.read_text() == before


@needs_root
@only_long
@pytest.mark.slow(seconds=60)
def test_each_fault_is_detected_and_costs_requests(tmp_path: Path) -> None:
    pytest.importorskip("h11")
    parts = deployment(table.SETTINGS)

    def body(box: Sandbox) -> object:
        return {name: [one._asdict() for one in ones] for name, ones in measure(parts, box, 1).items()}

    result = Sandboxed(body, tmp_path).result()
    assert set(result) == set(FAULTS)
    for name, (one,) in result.items():
        assert one["detected"] > 0, name
        assert 0 <= one["failed"] < one["sent"], name
    assert result["killed"][0]["failed"] > 0
    assert result["unavailable"][0]["failed"] > 0
