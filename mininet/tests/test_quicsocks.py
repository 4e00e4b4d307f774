# SPDX-License-Identifier: Apache-2.0
"""QuicSocks: the analytical model, and the LTE testbed."""

import os
from dataclasses import asdict
from pathlib import Path

import pytest

from frontage_demo.quicsocks import page
from frontage_demo.quicsocks.costs import Cost, measure_costs
from frontage_demo.quicsocks.masque import FOLDER, Masque
from frontage_demo.quicsocks.measure import Result, Row, measure
from frontage_demo.quicsocks.model import LTE, PUBLISHED, RoundTrips, establishment
from frontage_demo.quicsocks.testbed import Programs, bring_up, missing
from frontage_testbed.nodes import NodeError
from testbeds import Sandboxed, needs_root

REPOSITORY = Path(__file__).resolve().parents[2]
HANDSHAKES = 3


def test_model_gives_published_table() -> None:
    assert {key: establishment(*key, LTE) for key in PUBLISHED} == PUBLISHED
    assert "| without | RTT_DNS + RTT_direct | RTT_DNS + RTT_server |" in page.symbolic()
    assert "| with | RTT_DNS + 2 RTT_direct | RTT_DNS + 2 RTT_server |" in page.symbolic()
    assert "| with | 150 ms | 90 ms |" in page.numbers(LTE)


def test_page_contains_measurements() -> None:
    rows = [
        Row(method, start, retry, True, [base + 1.0, base + 2.0, base + 3.0], [])
        for retry in (False, True)
        for method, start, base in (("status quo", "", 90 + 60 * retry), ("proposal", "warm", 60 + 30 * retry))
    ]
    costs = [Cost("MASQUE", "warm", False, [92.0, 90.0, 94.0], 8123.4, 9000.0, 1.234)]
    text = page.page(Result(RoundTrips(30.5, 60.5, 30.5), rows, {"names resolved": 2}), costs)
    assert "| MASQUE warm | without | 92.0 ms | 8,123 | 9,000 | 1.23 ms | 3 |" in text
    assert "| proposal warm | with | 90.0 ms | 91.5 ms | 92.0 ms |" in text
    assert "When warm, the proxy saves 32.6 % without Retry (published: 33.3 %)" in text


@needs_root
@pytest.mark.slow
def test_every_handshake_uses_the_proxy_and_leaves_it(tmp_path: Path) -> None:
    folder = Path(os.environ.get("FRONTAGE_PROGRAMS", REPOSITORY / "target" / "release"))
    try:
        programs = Programs.of(folder)
    except NodeError as error:
        pytest.skip(str(error))
    if absent := missing():
        pytest.skip(f"missing Debian packages: apt-get install {' '.join(absent)}")

    def body(box):  # type: ignore[no-untyped-def]
        with bring_up(programs, box.scratch) as testbed:
            return measure(testbed, HANDSHAKES).as_json()

    result = Sandboxed(body, tmp_path).result()
    rows = {(row["method"], row["start"], row["retry"], row["cached"]): row for row in result["rows"]}
    # Delays are exact lower bounds: a faster handshake would have taken another path.
    for (method, start, retry, _cached), row in rows.items():
        least = establishment(method, retry, LTE) + (2 * LTE.dns if start == "cold" else 0)
        assert min(row["handshake_ms"]) >= least, row
    through = [row for row in rows.values() if row["method"] == "proposal"]
    assert all(len(row["migrated_ms"]) == HANDSHAKES for row in through)
    proxy = result["proxy"]
    with_retry = HANDSHAKES * sum(row["retry"] for row in through)
    assert proxy["server_datagrams retry_answered"] == with_retry
    assert proxy["flows_ended released"] == proxy["names resolved"] == HANDSHAKES * len(through)


@needs_root
@pytest.mark.slow(seconds=40)
def test_masque_takes_a_round_trip_more_than_quicsocks(tmp_path: Path) -> None:
    folder = Path(os.environ.get("FRONTAGE_PROGRAMS", REPOSITORY / "target" / "release"))
    try:
        programs, masque = Programs.of(folder), Masque.of(FOLDER)
    except NodeError as error:
        pytest.skip(str(error))
    if absent := missing():
        pytest.skip(f"missing Debian packages: apt-get install {' '.join(absent)}")

    def body(box):  # type: ignore[no-untyped-def]
        with bring_up(programs, box.scratch, masque) as testbed:
            return [asdict(cost) for cost in measure_costs(testbed, masque, HANDSHAKES)]

    costs = {(row["proxy"], row["start"], row["retry"]): row for row in Sandboxed(body, tmp_path).result()}
    assert len(costs) == 10
    for (proxy, start, retry), row in costs.items():
        assert len(row["handshake_ms"]) == HANDSHAKES + 2
        # The handshake, and to the MASQUE proxy a request. Its set-up is another handshake, that of QuicSocks two round trips.
        if proxy == "QuicSocks":
            least = establishment("proposal", retry, LTE) + (2 * LTE.dns if start == "cold" else 0)
        else:
            least = establishment("status quo", retry, LTE) + (LTE.dns if start == "cold" else 0)
        assert min(row["handshake_ms"]) >= least, row
        # An Initial fills a datagram of 1,200 bytes, as does the server's answer.
        assert min(row["bytes_sent"], row["bytes_received"]) > 1200, row
    # The CPU time of a few connections is a difference of two runs. On a busy machine, it can be negative.
    assert sum(row["cpu_ms"] for row in costs.values()) > 0, costs
