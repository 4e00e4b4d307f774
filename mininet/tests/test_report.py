# SPDX-License-Identifier: Apache-2.0
"""The report: self-contained, complete, and safe against unusual data."""

import re
from dataclasses import replace
from html.parser import HTMLParser

from frontage_demo import report
from frontage_demo.metrics import ActiveFlows, PolicyRun
from frontage_demo.scheduling import refusal_table
from frontage_testbed.datacentre.settings import POLICIES, Settings, Treatment
from frontage_testbed.load import workload
from frontage_testbed.load.outcome import Outcome
from frontage_testbed.load.protocols import PROTOCOLS
from frontage_testbed.reporting.plots import Axis, Line, cdf_points, plot

SETTINGS = Settings(seconds=5, servers=2)
FRAMING = PROTOCOLS["tcp"].framing
PLAN = workload.plan(seed=1, seconds=5, load=0.5, rate=160e6, scale=0.1, clients=4, framing=FRAMING)
VOID = {"meta", "br"}


class WellFormed(HTMLParser):
    """Fails on tags that are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def make_run(policy: str, result: str = "ok", scheduler: str = "fifo") -> PolicyRun:
    outcomes = tuple(
        Outcome(a.index, result, f"s{a.index % 2 + 1}", 0, 0, 1, 2, a.wire_size * 1000 + 1_000_000, a.wire_size, 9) for a in PLAN
    )
    active = ActiveFlows(("s1", "s2"), (0.0, 1.0, 2.0), ((0, 1), (3, 1), (2, 2)))
    return PolicyRun(
        Treatment(policy, scheduler),
        outcomes,
        active,
        drops={"tail-drop": 3},
        refusals={"64": 5, "1024": 777, "512": 0} if scheduler == "aifo" else {"64": 0},
        steering={"by-cookie": 9},
        retransmitted=4321,
        cpu={"edge": 0.2},
    )


def test_page_is_well_formed_and_self_contained() -> None:
    page = report.render(SETTINGS, PLAN, [make_run(p) for p in POLICIES], 0.49)
    checker = WellFormed()
    checker.feed(page)
    assert checker.open == []
    assert not re.search(r"(?:src|href)=|@import|url\(", page)
    assert "prefers-color-scheme: dark" in page
    assert f"All {6 * len(PLAN)} requests completed" in page
    for text in (*POLICIES, "seed", "tail-drop", "by-cookie", "s2", "bottleneck", "200 kB", "4321"):
        assert text in page
    assert "AIFO" not in page
    assert page.count("<svg") == 3 + len(POLICIES)


def test_page_names_policies_excluded_by_quic() -> None:
    page = report.render(replace(SETTINGS, protocol="quic"), PLAN, [make_run("hash")], 0.49)
    WellFormed().feed(page)
    for text in ("HTTP/3", "Policy cheetah-ll is excluded: it counts FIN and RST", "retrieved-cid", "noq"):
        assert text in page


BOTH = replace(SETTINGS, policies=("hash", "cclb4"), schedulers=("fifo", "aifo"))


def test_page_shows_both_schedulers_side_by_side() -> None:
    runs = [make_run(t.policy, scheduler=t.scheduler) for t in BOTH.treatments]
    page = report.render(BOTH, PLAN, runs, 0.49)
    checker = WellFormed()
    checker.feed(page)
    assert checker.open == []
    rows = re.findall(r"<tr><td>([^<]*)</td>", page.split("<h2>Flow completion times</h2>")[0])
    assert rows == ["hash", "hash+aifo", "cclb4", "cclb4+aifo"]
    for text in ("132 packets", "window of 20 ranks, samples one packet in 15", "k = 0.1"):
        assert text in page
    assert "<th>64</th><th>1024</th></tr>" in page, "bands are in order, without empty ones"
    assert page.count("<tr><td>hash+aifo</td><td>5</td><td>777</td></tr>") == 1
    # Distributions of short and long flows and of variances, short flows of each policy, and active flows of each run.
    assert page.count("<svg") == 3 + 2 + 4
    assert page.count('<path class="line s0 dashed"') == 3


def test_terminal_shows_drops_by_band() -> None:
    assert refusal_table([make_run("hash")]) is None
    table = refusal_table([make_run(t.policy, scheduler=t.scheduler) for t in BOTH.treatments])
    assert table is not None
    shown = {str(column.header): list(column.cells) for column in table.columns}
    assert shown == {
        "policy": ["hash", "hash+aifo", "cclb4", "cclb4+aifo"],
        "full": ["3", "3", "3", "3"],
        "64+": ["", "5", "", "5"],
        "1024+": ["", "777", "", "777"],
    }


def test_report_shows_failures() -> None:
    page = report.render(SETTINGS, PLAN, [make_run("hash", "ECONNRESET")], 0.49)
    assert f"{len(PLAN)} of {len(PLAN)} requests failed" in page


def test_run_without_finished_flows_has_a_page() -> None:
    run = PolicyRun(Treatment("hash"), (), ActiveFlows(("s1", "s2"), (), ()))
    WellFormed().feed(report.render(SETTINGS, PLAN, [run], 0.49))


def test_axes_have_round_ticks() -> None:
    assert [t for _, t in Axis("", 0, 20).ticks()] == ["0", "5", "10", "15", "20"]
    assert [t for _, t in Axis("", 0.5, 2000, logarithmic=True).ticks()] == ["1", "10", "100", "1000"]


def test_thinned_cdf_keeps_its_ends() -> None:
    points = cdf_points([float(v) for v in range(5000)])
    assert points[0] == (0.0, 1 / 5000)
    assert points[-1] == (4999.0, 1.0)
    assert len(points) < 1000


def test_labels_are_escaped() -> None:
    assert "<b>" not in plot("<b>", Axis("<b>", 0, 1), Axis("y", 0, 1), [Line("<b>", 0, [(0, 0), (1, 1)])])
