# SPDX-License-Identifier: Apache-2.0
"""The load of the recirculation ports follows from counts, and docs/tofino.md has p4src/tna/recirculation.json."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tofino import page, recirculation

COUNTS = {
    "packets": 10,
    "bytes": 9760,
    "second_passes": 1,
    "second_pass_bytes": 976,
    "workers": 5,
    "worker_bytes": 4880,
    "digests": 0,
    "traced": 2,
    "resubmissions": 1,
}


def test_load_is_the_mean_of_a_packet() -> None:
    load = recirculation.load({"down": COUNTS})
    assert load == recirculation.Load(1000, 0.5, 0.1, 600, 0.5)
    assert load.line_rate == 200e6
    assert load.port_share == pytest.approx(9.6)
    assert load.remaining == pytest.approx(1 / 9.6)


def test_pipe_limits_short_packets() -> None:
    load = recirculation.Load(wire_bytes=100, workers=0, second_passes=0, recirculated_bytes=1, resubmissions=1)
    assert load.remaining == pytest.approx(1.22e9 / (2e9 * 2))


def test_page_has_the_counts() -> None:
    counted = json.loads(recirculation.GOLDEN.read_text())
    assert "\n".join(recirculation.block(counted)) in page.PAGE.read_text()
