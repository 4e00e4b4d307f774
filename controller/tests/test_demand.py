# SPDX-License-Identifier: Apache-2.0
"""Counter deltas, load reports, demand estimates and moves."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import EXAMPLE
from frontage.config import Config, ConfigError, loads
from frontage.limits import DEMAND_CELLS
from frontage.mapping.demand.counters import CounterDeltas
from frontage.mapping.demand.estimate import Gain, SiteDemand, demand_by_region, move_gain
from frontage.mapping.demand.moves import SiteStage, Stage, advance, decide, initial_stages
from frontage.mapping.demand.reports import Report, Reporter, noise_threshold
from frontage.mapping.placement.policy import Policy
from frontage.mapping.placement.values import Sites
from frontage.p4.entries import Action
from frontage.state.allocation import Installed, allocate
from frontage.state.blocks import demand as block
from frontage.state.blocks.demand import Cells, cell_indices

CELLS = {"films": Cells(0, 8), "books": Cells(8, 8)}
ARTEMIS = EXAMPLE.with_name("artemis.yaml")
END_USERS = "end_users:\n  store: sqlite:///mapping.db\n"


def config(section: str, end_users: str = END_USERS) -> Config:
    """Return the Artemis example with services placed by demand."""
    text = re.sub(r"^mapping: .*\n", end_users, ARTEMIS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return loads(text + section, ARTEMIS)


PLACEMENT = """
placement:
  services: [{ name: Films.example }, { name: small.example, updates: 2 }]
  sites: [{ site: 1, capacity: 100 }, { site: 2, capacity: 100 }]
  min_replicas: 1
"""


def test_services_share_the_counter_cells() -> None:
    found = config(PLACEMENT)
    assert block.cells(found) == {"films": Cells(0, 65535), "small": Cells(65535, 65535)}
    entries = block.entries(block.cells(found), allocate(found, Installed({})).vip_ids)
    assert list(entries.values()) == [Action("set_counter_range", (0, 65535)), Action("set_counter_range", (65535, 65535))]
    assert block.cells(config("")) == {}
    assert cell_indices(CELLS, {1, 7, 8, 65535}) == [0, 1, 7, 8, 9, 15]
    assert DEMAND_CELLS >= 2 * 65535


@pytest.mark.parametrize(
    ("change", "line", "what"),
    [
        (
            ("name: Films.example", "name: tunes.example"),
            3,
            "no VIP has the Artemis name tunes.example: use one of: films.example, small",
        ),
        (("small.example", "films.example"), 3, "service films.example is listed twice: remove one"),
        (("site: 2,", "site: 9,"), 4, "unknown site 9: use one of: 1, 2"),
        (("site: 2,", "site: 1,"), 4, "site 1 is listed twice: remove one"),
        (
            ("min_replicas: 1", "min_replicas: 3"),
            5,
            "3 replicas of a service do not fit at 2 sites with capacity: set min_replicas: 2",
        ),
        (("min_replicas: 1", "min_replicas: 2\n  max_replicas: 1"), 6, "is below min_replicas, 2: set at least 2"),
        (("min_replicas: 1", "min_replicas: 1\n  share: 0.003"), 6, "leaves no messages for reconfigurations"),
        (("min_replicas: 1", "min_replicas: 1\n  epoch: 0"), 6, "epoch"),
        (("capacity: 100 }]", "capacity: -1 }]"), 4, "capacity"),
    ],
)
def test_invalid_section_is_rejected_with_line_and_fix(change: tuple[str, str], line: int, what: str) -> None:
    text = re.sub(r"^mapping: .*\n", END_USERS, ARTEMIS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    with pytest.raises(ConfigError) as refused:
        loads(text + PLACEMENT.replace(*change), Path("f.yaml"))
    lines = str(refused.value).splitlines()
    assert [one for one in lines if what in one]
    assert lines[0].startswith(f"f.yaml:{len(text.splitlines()) + line}:")


def test_placement_without_mapping_is_rejected() -> None:
    with pytest.raises(ConfigError, match="placement: placement needs the computed end-user mapping"):
        config(PLACEMENT, "")


def test_counter_deltas_since_last_reading() -> None:
    epochs = CounterDeltas()
    # The first reading has no basis for comparison.
    assert epochs.update(CELLS, 1, {0: 5, 9: 7}) is None
    assert epochs.update(CELLS, 1, {0: 5, 9: 10, 12: 1}) == {"films": {}, "books": {1: 3, 4: 1}}
    # A region that is not read for a while is not counted twice.
    assert epochs.update(CELLS, 1, {0: 6}) == {"films": {0: 1}, "books": {}}
    assert epochs.update(CELLS, 1, {0: 6, 9: 11}) == {"films": {}, "books": {1: 1}}
    # The switch restarted: a new generation, then a counter that is lower than before.
    assert epochs.update(CELLS, 2, {0: 7}) == {"films": {0: 7}, "books": {}}
    assert epochs.update(CELLS, 2, {0: 3}) == {"films": {0: 3}, "books": {}}
    assert epochs.update({"films": Cells(0, 16)}, 2, {0: 9}) is None
    assert epochs.update({"films": Cells(0, 16)}, 2, {0: 10}) == {"films": {0: 1}}
    # Another controller was primary and reported the handshakes, but not those after this one restarted the switch.
    epochs.skip()
    assert epochs.update({"films": Cells(0, 16)}, 2, {0: 15}) is None
    assert epochs.update({"films": Cells(0, 16)}, 2, {0: 16}) == {"films": {0: 1}}
    epochs.skip()
    assert epochs.update({"films": Cells(0, 16)}, 3, {0: 4}) == {"films": {0: 4}}


def reporter(requests: int = 100, moved: float = 0.1) -> Reporter:
    return Reporter(Policy(requests, moved, share=1.0, controllers=1))


def tell(one: Reporter) -> list[Report]:
    due = one.due()
    for report in due:
        one.acknowledge(report)
    return due


def test_report_waits_for_requests_and_has_regions_only_if_they_moved() -> None:
    one = reporter()
    one.count("films", {1: 99}, 10.0)
    assert tell(one) == []
    one.count("films", {2: 101}, 10.0)
    first = Report("films", 200, 20.0, {1: 99, 2: 101})
    assert one.due() == [first]
    # A report stays due until it is acknowledged.
    assert tell(one) == [first]
    assert one.due() == []
    one.count("films", {1: 50, 2: 50}, 5.0)
    assert tell(one) == [Report("films", 100, 5.0, None)]
    one.count("films", {1: 10, 3: 90}, 5.0)
    assert tell(one) == [Report("films", 100, 5.0, {1: 10, 3: 90})]


def test_regions_are_reported_again_after_four_times_as_many_handshakes() -> None:
    one = reporter()
    told = []
    for _ in range(32):
        one.count("films", {1: 60, 2: 40}, 5.0)
        told += tell(one)
    assert [report.requests for report in told] == [100] * 32
    vectors = {i: report.regions for i, report in enumerate(told) if report.regions is not None}
    assert vectors == {0: {1: 60, 2: 40}, 4: {1: 240, 2: 160}, 20: {1: 960, 2: 640}}


def test_gradual_shift_is_reported() -> None:
    one = reporter(moved=0.1)
    for _ in range(50):
        one.count("films", {1: 60, 2: 40}, 5.0)
        tell(one)
    found = []
    for _ in range(50):
        # The shift is too small to show in a single report.
        one.count("films", {1: 42, 2: 58}, 5.0)
        found += [report.regions for report in tell(one) if report.regions is not None]
    assert found
    assert found[-1][2] / sum(found[-1].values()) > 0.45


def test_end_of_demand_is_reported_once() -> None:
    one = reporter()
    one.count("films", {1: 200}, 10.0)
    assert len(tell(one)) == 1
    one.count("films", {}, 4.0)
    assert tell(one) == []
    one.count("films", {}, 2.0)
    assert tell(one) == [Report("films", 0, 6.0, None)]
    one.count("films", {}, 1000.0)
    assert tell(one) == []


def test_falling_demand_is_reported_each_time_it_halves() -> None:
    one = reporter()
    one.count("films", {1: 200}, 10.0)
    assert len(tell(one)) == 1
    told = []
    for second in range(200):
        one.count("films", {1: 8} if second < 50 else {1: 1} if second % 4 == 0 else {}, 1.0)
        told += tell(one)
    # 8 is less than half of 20 per second. Four more halvings follow until m expected handshakes take longer than this.
    rates = [report.rate for report in told]
    assert rates[0] == 8.0
    assert rates[-1] < 1.0
    assert all(
        report.requests >= 100 or later.rate <= rate / 2 for rate, later, report in zip(rates, told[1:], told[1:], strict=False)
    )


@given(st.lists(st.dictionaries(st.integers(0, 3), st.integers(0, 60), max_size=3), min_size=1, max_size=40))
def test_reports_are_a_bounded_share_and_lose_no_handshakes(epochs: list[dict[int, int]]) -> None:
    one = reporter()
    reports: list[Report] = []
    for regions in epochs:
        one.count("films", regions, 1.0)
        reports += tell(one)
    told = sum(report.requests for report in reports)
    counted = sum(sum(regions.values()) for regions in epochs)
    assert counted - 100 < told <= counted
    regular = sum(report.requests >= 100 for report in reports)
    assert regular * 100 <= counted
    # Reports of missing handshakes: this time allows so many halvings of the highest rate, 180 per second.
    assert len(reports) <= 7 * regular


@pytest.mark.parametrize(("regions", "now", "before"), [(2, 50, 300), (20, 300, 300), (100, 300, 3000)])
def test_noise_threshold_bounds_apparent_moves(regions: int, now: int, before: int) -> None:
    rng = np.random.default_rng(1)
    share = np.full(regions, 1 / regions)
    pairs = [(rng.multinomial(now, share), rng.multinomial(before, share)) for _ in range(2000)]
    seen = np.array([abs(a / now - b / before).sum() / 2 for a, b in pairs])
    said = np.array([noise_threshold(dict(enumerate(b.tolist())), dict(enumerate(a.tolist()))) for a, b in pairs])
    assert (seen >= said).mean() <= 0.06
    assert said.mean() <= 3 * seen.mean()


def test_demand_sums_all_sites_at_their_rates() -> None:
    rtts = np.array([[np.inf, np.inf], [1.0, 2.0], [2.0, 1.0], [np.inf, np.inf]], np.float32)
    seen = [SiteDemand(8.0, 80, {1: 3, 2: 1}), SiteDemand(5.0, 50, {2: 5}), SiteDemand(0.0, 1, {2: 5})]
    assert demand_by_region(seen, rtts) == {1: 6.0, 2: 7.0}
    # Handshakes from regions without RTTs, or from removed regions, are spread like the others.
    lost = SiteDemand(13.0, 130, {0: 1, 3: 10, 77: 2})
    assert demand_by_region([*seen, lost], rtts) == pytest.approx({1: 12.0, 2: 14.0})
    assert demand_by_region([lost], rtts) == {}
    assert demand_by_region([], rtts) == {}


AT = Sites.of([1.0] * 3, np.array([[np.inf] * 3, [10, 100, 70], [100, 10, 70], [70, 70, 10]]) * 1000)
"""RTTs by [region, site]: two distant sites, and one between them."""


def of(*sites: int) -> np.typing.NDArray[np.bool_]:
    return np.array([site in sites for site in range(3)])


def test_gain_has_standard_error_of_its_samples() -> None:
    # One site, one sample: the error of a t-test.
    found = move_gain([SiteDemand(2.0, 100, {1: 20, 2: 80})], AT, of(0), of(1))
    assert found.mean == pytest.approx(54_000)
    spread = 90_000 * np.sqrt(0.2 * 0.8) * 2
    assert found.error == pytest.approx(np.hypot(spread / 10, 54_000 / 10))
    # The same from two sites with one region each: only their rates are uncertain.
    apart = move_gain([SiteDemand(0.4, 20, {1: 7}), SiteDemand(1.6, 80, {2: 7})], AT, of(0), of(1))
    assert apart.mean == pytest.approx(54_000)
    assert apart.error == pytest.approx(90_000 / 10)
    assert move_gain([SiteDemand(2.0, 100, {0: 20, 77: 80})], AT, of(0), of(1)) == Gain(0.0, 0.0)
    assert move_gain([], AT, of(0), of(1)) == Gain(0.0, 0.0)
    assert move_gain([SiteDemand(2.0, 100, {1: 1})], AT, of(), of(1)).is_significant
    # Load latency counts like RTT, for handshakes and for updates at each site.
    busy = AT.loaded(np.array([0, 50_000, 0], np.float32))
    assert move_gain([SiteDemand(2.0, 100, {1: 20, 2: 80})], busy, of(0), of(1)).mean == pytest.approx(4_000)
    assert move_gain([SiteDemand(2.0, 100, {1: 20, 2: 80})], busy, of(0), of(1), updates=0.2).mean == pytest.approx(-1_000)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("handshakes", [12, 30, 300])
def test_noise_moves_nothing_and_demand_does(seed: int, handshakes: int) -> None:
    rng = np.random.default_rng(seed)

    def certain(shares: list[float], wanted: int) -> float:
        """Return how often the gain is significant with so many handshakes."""
        draws = [rng.poisson(handshakes * np.array(shares)) for _ in range(400)]
        found = [
            move_gain([SiteDemand(float(n), n, {region: 1}) for region, n in enumerate(draw.tolist(), 1)], AT, of(0), of(wanted))
            for draw in draws
        ]
        return float(np.mean([one.is_significant for one in found]))

    # With demand split evenly, the middle site is as good as the others.
    assert certain([0.47, 0.47, 0.06], 2) < 0.25
    assert certain([0.8, 0.14, 0.06], 1) < 0.01
    assert certain([0.8, 0.14, 0.06], 2) < 0.01
    assert certain([0.14, 0.8, 0.06], 1) > 0.9


ACTIVE, STARTING, LEAVING, DRAINING, GONE = Stage.ACTIVE, Stage.STARTING, Stage.LEAVING, Stage.DRAINING, Stage.GONE


def stages(places: dict[int, SiteStage]) -> dict[int, Stage]:
    return {site: one.stage for site, one in places.items()}


def test_move_is_make_before_break() -> None:
    def later(now: float, *accepting: int) -> dict[int, Stage]:
        nonlocal places
        places = advance(places, accepting, now, settle=4.0, drain=60.0)
        return stages(places)

    places = decide(initial_stages([1], 0.0), {2}, 100.0)
    assert stages(places) == {1: LEAVING, 2: STARTING}
    # The old site serves as long as there is no other.
    assert later(1000.0, 1) == {1: LEAVING, 2: STARTING}
    assert later(1001.0, 1, 2) == {1: LEAVING, 2: ACTIVE}
    assert later(1004.0, 1, 2) == {1: LEAVING, 2: ACTIVE}
    # The new site fails when the old one was about to leave.
    assert later(1005.0, 1) == {1: LEAVING, 2: ACTIVE}
    assert later(1006.0, 1, 2) == {1: DRAINING, 2: ACTIVE}
    assert later(1065.0, 1, 2) == {1: DRAINING, 2: ACTIVE}
    assert later(1066.0, 1, 2) == {1: GONE, 2: ACTIVE}


def test_decision_can_be_reverted() -> None:
    places = decide(initial_stages([1, 2], 0.0), {3}, 10.0)
    assert stages(places) == {1: LEAVING, 2: LEAVING, 3: STARTING}
    # Sites that still serve stay active; a site that never served is gone.
    assert stages(decide(places, {1}, 11.0)) == {1: ACTIVE, 2: LEAVING, 3: GONE}
    drained = {1: SiteStage(DRAINING, 5.0), 2: SiteStage(ACTIVE, 0.0)}
    assert stages(decide(drained, {1, 2}, 11.0)) == {1: STARTING, 2: ACTIVE}
    assert decide(places, {3}, 12.0) == places


@given(st.lists(st.tuples(st.sets(st.integers(1, 4), min_size=1), st.sets(st.integers(1, 4)), st.integers(0, 30)), max_size=30))
def test_some_site_serves_whatever_is_decided(rounds: list[tuple[set[int], set[int], int]]) -> None:
    places, now = initial_stages({1}, 0.0), 0.0
    for wanted, accepting, seconds in rounds:
        now += seconds
        places = advance(decide(places, wanted, now), accepting, now, settle=4.0, drain=20.0)
        assert any(stage.serves for stage in stages(places).values())
        assert {site for site, stage in stages(places).items() if stage.wanted} == wanted
