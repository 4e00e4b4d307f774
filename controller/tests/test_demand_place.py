# SPDX-License-Identifier: Apache-2.0
"""Placement in the running mapping: from load reports to the sites of services and the dispatchers' tables."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dispatchers import FakeDispatcher, running
from frontage import cli
from frontage.mapping.compute.prefixes import parse
from frontage.mapping.control.mapper import Mapper
from frontage.mapping.demand.moves import Stage
from frontage.mapping.demand.reports import Report
from frontage.mapping.errors import StoreError
from frontage.mapping.settings import EndUsers, ManagedDispatcher, Placement
from test_demand import ARTEMIS, PLACEMENT, config
from test_mapping_run import FILMS, NEAR_ONE, NEAR_TWO, addresses

NAME = FILMS.name
EPOCH = 100.0
NEAR_THREE = "203.0.113.0/24"


@pytest.fixture
def sites() -> Iterator[list[FakeDispatcher]]:
    with running(3) as all_:
        yield all_


def settings(**more: Any) -> Placement:
    about = {"epoch": EPOCH, "min_replicas": 1, "max_replicas": 1, "requests": 10, "share": 0.5, "drain": 50.0}
    about |= {"services": [{"name": NAME}], "sites": [{"site": site, "capacity": 100.0} for site in (1, 2, 3)]}
    return Placement.model_validate(about | more)


def mapper(
    folder: Path, sites: list[FakeDispatcher], placement: Placement | None, *, name: str = "one", probes_per_second: float = 0.0
) -> Mapper:
    dispatchers = tuple(ManagedDispatcher(site=one.site, url=one.url) for one in sites)
    store = f"sqlite:///{folder}/mapping.db"
    end_users = EndUsers(store=store, dispatchers=dispatchers, probes_per_second=probes_per_second)
    found = Mapper(end_users, addresses(), (FILMS,), site=1, name=name, placement=placement)
    found._register()
    return found


async def start(one: Mapper, sites: list[FakeDispatcher]) -> float:
    """Add a replica at each site and a client prefix near each. Returns the time of the last round."""
    for there in sites:
        there.replica(100 * there.site, NAME)
        for near, prefix in enumerate((NEAR_ONE, NEAR_TWO, NEAR_THREE), 1):
            there.measure(prefix, 1_000 if there.site == near else 50_000 + 10_000 * abs(there.site - near))
    for now in (996.0, 998.0, 1000.0):
        await one.step(now)
    return now


def region(one: Mapper, prefix: str) -> int:
    return one.tables.clients[parse(prefix)]


def stages(one: Mapper) -> dict[int, Stage]:
    return {site: place.stage for site, place in one.store.placements().get(NAME, {}).items()}


def document(one: Mapper) -> dict[str, Any]:
    """Return the service's placement document."""
    return one.store.documents()[NAME]


def deployed(one: Mapper) -> tuple[int, ...]:
    """Return the sites that get first flights of the service."""
    return one.tables.deployments[one.tables.services[NAME]].sites


def ask(one: Mapper, now: float, rates: dict[str, float], requests: int = 500) -> None:
    """Report demand from these prefixes, as a site's switch counts it."""
    seconds = requests / sum(rates.values())
    regions = {region(one, prefix): round(rate * seconds) for prefix, rate in rates.items()}
    one.store.add_reports(1, [Report(NAME, requests, seconds, regions)], now)


async def test_regions_are_separate_wherever_the_service_runs(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    one = mapper(tmp_path, sites, settings())
    now = await start(one, sites)
    assert deployed(one) == (1, 2, 3)
    assert len({region(one, prefix) for prefix in (NEAR_ONE, NEAR_TWO, NEAR_THREE)}) == 3
    ask(one, now, {NEAR_ONE: 10.0})
    await one.step(now + EPOCH)
    assert stages(one) == {1: Stage.ACTIVE, 2: Stage.LEAVING, 3: Stage.LEAVING}
    await one.step(now + EPOCH + 2)
    await one.step(now + EPOCH + 4)
    assert deployed(one) == (1,)
    assert len({region(one, prefix) for prefix in (NEAR_ONE, NEAR_TWO, NEAR_THREE)}) == 3


async def test_service_follows_demand_make_before_break(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    one = mapper(tmp_path, sites, settings())
    now = await start(one, sites)
    ask(one, now, {NEAR_ONE: 10.0})
    now += EPOCH
    for seconds in (0, 4):
        await one.step(now + seconds)
    assert deployed(one) == (1,)
    sites[1].replica(200, NAME, accepting=False)
    ask(one, now, {NEAR_TWO: 9.0, NEAR_ONE: 1.0})
    now += EPOCH
    await one.step(now)
    # There is no replica yet.
    assert stages(one) == {1: Stage.LEAVING, 2: Stage.STARTING}
    assert deployed(one) == (1,)
    sites[1].replica(200, NAME)
    await one.step(now + 2)
    # From now on both sites; clients are sent to the new one at once.
    assert stages(one) == {1: Stage.LEAVING, 2: Stage.ACTIVE}
    assert deployed(one) == (1, 2)
    assert sites[0].sites_for(FILMS.number, NEAR_TWO)[0] == 2
    await one.step(now + 6)
    assert stages(one) == {1: Stage.DRAINING, 2: Stage.ACTIVE}
    assert deployed(one) == (2,)
    assert sites[0].sites_for(FILMS.number, NEAR_ONE) == [2]
    await one.step(now + 60)
    assert stages(one) == {2: Stage.ACTIVE}
    assert one.placer is not None
    assert one.placer.reconfigurer.overhead.reconfigurations == 2
    assert one.placer.reconfigurer.overhead.requests == 1000


async def test_move_waits_for_handshakes_that_pay_for_it(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    one = mapper(tmp_path, sites, settings(requests=100, share=0.05))
    now = await start(one, sites)
    # From three sites to one costs 8 messages, paid from a share of 0.05 minus one report in 100.
    needed = max(300, 8 / (0.05 - 0.01))
    ask(one, now, {NEAR_ONE: 10.0}, requests=int(needed) - 1)
    await one.step(now + EPOCH)
    assert stages(one) == {}
    change = one.store.documents()[NAME]["next"]
    assert (change["begun"], change["added"], change["removed"], change["handshakes_missing"]) == (False, [], [2, 3], 1)
    # Another controller takes over; no count is lost.
    two = mapper(tmp_path, sites, settings(requests=100, share=0.05), name="two")
    one.store.add_reports(1, [Report(NAME, 1, 0.1, None)], now)
    await two.step(now + EPOCH + 50)
    await two.step(now + 2 * EPOCH)
    assert two.engine is not None
    assert {site for site, stage in stages(two).items() if stage is Stage.ACTIVE} == {1}


async def test_move_completes_within_two_epochs_and_is_documented(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    one = mapper(tmp_path, sites, settings())
    now = await start(one, sites)
    ask(one, now, {NEAR_ONE: 9.0, NEAR_TWO: 1.0})
    for seconds in (0, 4):
        await one.step(now + EPOCH + seconds)
    assert document(one)["move"] == {"shown": 2, "decided": 2, "active": 2}
    sites[1].replica(200, NAME, accepting=False)
    # Demand moves in the middle of the third epoch: it is split between two sites, and the third is between them.
    ask(one, now, {NEAR_ONE: 5.0, NEAR_TWO: 5.0}, requests=40)
    await one.step(now + 2 * EPOCH)
    assert deployed(one) == (1,)
    ask(one, now, {NEAR_ONE: 1.0, NEAR_TWO: 9.0}, requests=80)
    await one.step(now + 3 * EPOCH)
    assert (document(one)["number"], stages(one)) == (4, {1: Stage.LEAVING, 2: Stage.STARTING})
    assert document(one)["move"]["decided"] == 4
    assert document(one)["move"]["active"] is None
    # Another controller takes over, and its epoch ends at once; then the replica appears.
    two = mapper(tmp_path, sites, settings(), name="two")
    await two.step(now + 4 * EPOCH)
    await two.step(now + 4 * EPOCH + 2)
    sites[1].replica(200, NAME)
    await two.step(now + 4 * EPOCH + 4)
    assert document(one)["move"] == {"shown": 4, "decided": 4, "active": 5}
    assert two.placer is not None
    assert two.placer.last_moves == {NAME: document(one)["move"]}


async def test_insignificant_gain_is_held_until_significant(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    one = mapper(tmp_path, sites, settings())
    now = await start(one, sites)
    ask(one, now, {NEAR_ONE: 9.0, NEAR_TWO: 1.0})
    await one.step(now + EPOCH)
    ask(one, now, {NEAR_ONE: 9.0, NEAR_TWO: 11.0}, requests=40)
    await one.step(now + 2 * EPOCH)
    change = document(one)["next"]
    assert (change["begun"], change["held"], change["added"], change["handshakes_missing"]) == (False, True, [2], 0)
    assert 0 < change["gain_us"] < change["gain_error_us"]
    assert document(one)["move"]["decided"] == 2
    ask(one, now, {NEAR_ONE: 9.0, NEAR_TWO: 11.0}, requests=4000)
    await one.step(now + 3 * EPOCH)
    assert document(one)["move"] == {"shown": 3, "decided": 4, "active": 4}
    assert document(one)["next"]["gain_us"] > document(one)["next"]["gain_error_us"]


async def test_waiting_handshakes_raise_load_latency(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    one = mapper(tmp_path, sites, settings())
    now = await start(one, sites)
    # Sites 1 and 2 are 50 and 60 ms from NEAR_THREE, and the near site has no replica.
    sites[2].stop()
    ask(one, now, {NEAR_THREE: 10.0})
    await one.step(now + EPOCH)
    assert {site for site, stage in stages(one).items() if stage.wanted} == {2}
    assert document(one)["load_latency_us"] == {"1": 0.0, "2": 0.0, "3": 0.0}
    # A single congested network does not count against the site; the median does.
    for prefix, rtt, count in ((NEAR_ONE, 70_000, 3), (NEAR_TWO, 31_000, 2), (NEAR_THREE, 100_000, 4)):
        sites[1].measure(prefix, rtt, count=count)
    await one.step(now + EPOCH + 2)
    ask(one, now, {NEAR_THREE: 10.0})
    await one.step(now + 2 * EPOCH)
    assert document(one)["load_latency_us"]["2"] == pytest.approx(30_000)
    assert {site for site, stage in stages(one).items() if stage.wanted} == {1}
    # Nothing waits there any more: the average halves each epoch until the site is near again.
    for epoch in range(3, 6):
        ask(one, now, {NEAR_THREE: 10.0})
        await one.step(now + epoch * EPOCH)
    assert document(one)["load_latency_us"]["2"] == pytest.approx(30_000 / 8)
    assert {site for site, stage in stages(one).items() if stage.wanted} == {2}


async def test_waits_seen_by_another_controller_count_equally(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    one = mapper(tmp_path, sites, settings())
    now = await start(one, sites)
    two = mapper(tmp_path, sites, settings(), name="two")
    waited: list[float] = []
    for epoch, rtt in enumerate((21_000, 41_000), 1):
        # Each controller gets some handshakes, and only one places.
        sites[1].measure(NEAR_TWO, rtt)
        await two.step(now + 2)
        sites[1].measure(NEAR_TWO, rtt + 40_000, count=3)
        await one.step(now + 2)
        ask(one, now, {NEAR_ONE: 10.0})
        await one.step(now + epoch * EPOCH)
        assert two.engine is None
        waited.append(document(one)["load_latency_us"]["2"])
    first, second = (20_000 + 3 * 60_000) / 4, (40_000 + 3 * 80_000) / 4
    assert waited == pytest.approx([first, (first + second) / 2])
    assert one.store.take_waits() == []


async def test_decision_is_repeated_after_store_failure(
    tmp_path: Path, sites: list[FakeDispatcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = mapper(tmp_path, sites, settings())
    now = await start(one, sites)
    ask(one, now, {NEAR_ONE: 10.0}, requests=40)
    assert one.placer is not None
    with monkeypatch.context() as patch:

        def lost(*_: object) -> None:
            raise StoreError("the disk is full")

        patch.setattr(one.store, "write_documents", lost)
        await one.step(now + EPOCH)
        assert one.counters.error == "the disk is full"
        assert stages(one) == {}
    await one.step(now + EPOCH + 2)
    assert one.counters.error is None
    assert {site for site, stage in stages(one).items() if stage.wanted} == {1}


async def test_lost_site_is_replaced(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    one = mapper(tmp_path, sites, settings())
    now = await start(one, sites)
    ask(one, now, {NEAR_ONE: 10.0})
    for seconds in (0, 4):
        await one.step(now + EPOCH + seconds)
    assert deployed(one) == (1,)
    sites[0].stop()
    await one.step(now + EPOCH + 6)
    # None of the wanted sites has a replica: serve anywhere rather than nowhere.
    assert deployed(one) == (2, 3)
    one.store.add_reports(2, [Report(NAME, 500, 50.0, None)], now)
    await one.step(now + 2 * EPOCH)
    await one.step(now + 2 * EPOCH + 2)
    assert stages(one) == {1: Stage.LEAVING, 2: Stage.ACTIVE}
    assert deployed(one) == (2,)


async def test_unplaceable_service_stays_and_is_reported(
    tmp_path: Path, sites: list[FakeDispatcher], caplog: pytest.LogCaptureFixture
) -> None:
    one = mapper(tmp_path, sites, settings(min_replicas=3, max_replicas=3))
    now = await start(one, sites)
    sites[2].stop()
    ask(one, now, {NEAR_ONE: 10.0})
    await one.step(now + 10)
    with caplog.at_level(logging.WARNING):
        await one.step(now + EPOCH)
    assert "2 usable sites are too few for 3 replicas of a record" in caplog.text
    assert one.placer is not None
    assert one.placer.counters.error is not None
    assert stages(one) == {}
    assert deployed(one) == (1, 2)


async def test_placement_error_is_shown_until_resolved(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    file = tmp_path / "frontage.yaml"
    text = ARTEMIS.read_text(encoding="utf-8").replace("mapping: artemis-mapping.json", "end_users:\n  store: sqlite:///mapping.db")
    file.write_text(text + PLACEMENT, encoding="utf-8")
    why = "2 usable sites are too few for 3 replicas of a record: lower min_replicas, or add sites"
    three = settings(min_replicas=3, max_replicas=3)
    one = mapper(tmp_path, sites, three)
    now = await start(one, sites)
    sites[2].stop()
    ask(one, now, {NEAR_ONE: 10.0})
    await one.step(now + 10)
    await one.step(now + EPOCH)
    assert f"runs wherever it has replicas: 1 frankfurt, 2 tokyo; {why}" in run(NAME, "-c", str(file)).stdout
    # Another controller takes over, and the site is back.
    two = mapper(tmp_path, sites, three, name="two")
    sites[2].start()
    for seconds in (50, 52, 54):
        await two.step(now + EPOCH + seconds)
    await two.step(now + 3 * EPOCH)
    shown = run(NAME, "-c", str(file)).stdout
    assert (why in shown, "10.0 handshakes per second" in shown) == (False, True)
    sites[2].stop()
    await two.step(now + 3 * EPOCH + 2)
    await two.step(now + 4 * EPOCH)
    shown = run(NAME, "-c", str(file)).stdout
    assert (f"the last epoch placed nothing: {why}" in shown, "10.0 handshakes per second" in shown) == (True, True)


async def test_demand_above_capacity_gives_min_replicas_and_is_reported(
    tmp_path: Path, sites: list[FakeDispatcher], caplog: pytest.LogCaptureFixture
) -> None:
    services = [{"name": NAME, "updates": 5.0}]
    one = mapper(tmp_path, sites, settings(services=services, max_replicas=3))
    now = await start(one, sites)
    ask(one, now, {NEAR_ONE: 5000.0})
    with caplog.at_level(logging.WARNING):
        await one.step(now + EPOCH)
    assert "demand is 5005 handshakes per second, but mu times the sites' capacity is 210: each service has" in caplog.text
    assert {site for site, stage in stages(one).items() if stage.wanted} == {1}


async def test_demand_without_known_rtts_moves_nothing(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    one = mapper(tmp_path, sites, settings())
    now = await start(one, sites)
    one.store.add_reports(1, [Report(NAME, 500, 50.0, {0: 200, 60000: 300}), Report("gone.example", 500, 500.0, {1: 500})], now)
    await one.step(now + EPOCH)
    assert stages(one) == {}
    assert one.store.documents() == {}
    assert deployed(one) == (1, 2, 3)


async def test_removed_section_restores_all_sites(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    one = mapper(tmp_path, sites, settings())
    now = await start(one, sites)
    ask(one, now, {NEAR_ONE: 10.0})
    for seconds in (0, 4):
        await one.step(now + EPOCH + seconds)
    assert deployed(one) == (1,)
    two = mapper(tmp_path, sites, None, name="two")
    await two.step(now + EPOCH + 100)
    await two.step(now + EPOCH + 102)
    assert (stages(two), two.store.documents(), deployed(two)) == ({}, {}, (1, 2, 3))


async def test_new_prefixes_are_probed_up_to_limit(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    one = mapper(tmp_path, sites, settings(), probes_per_second=10.0)
    now = await start(one, sites)
    assert one.prober.under_way is not None
    await one.prober.under_way
    seen = [parse(prefix) for prefix in ("192.0.2.0/24", "2001:db8:77::/48")]
    assert one.store.add_client_prefixes(seen, now, limit=10) == 0
    assert one.store.add_client_prefixes([*seen, parse("2001:db8:78::/48"), parse("2001:db8:79::/48")], now, limit=3) == 1
    await one.step(now + 2)
    await one.prober.under_way
    for there in sites:
        assert {"192.0.2.1", "2001:db8:77::1", "2001:db8:78::1"} <= set(there.probed)
        assert "2001:db8:79::1" not in there.probed
    # Old prefixes expire, without changes for other controllers to read.
    version = one.store.version()
    one.store.expire_client_prefixes(now)
    assert one.store.version() == version
    one.store.expire_client_prefixes(now + 1)
    assert (one.store.unmeasured(1, 0.0, "", 100), one.store.version()) == ([], version + 1)
    await one.step(now + 4)
    assert one.store.add_client_prefixes(seen, now, limit=10) == 0
    await one.step(now + one.settings.max_age + 60)
    assert one.store.add_client_prefixes([parse("2001:db8:79::/48")], now, limit=1) == 0
    await one.prober.under_way


def run(*arguments: str) -> Any:
    return CliRunner().invoke(cli.app, ["placement", *arguments])


async def test_command_shows_demand_replicas_and_next_change(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    file = tmp_path / "frontage.yaml"
    text = ARTEMIS.read_text(encoding="utf-8").replace("mapping: artemis-mapping.json", "end_users:\n  store: sqlite:///mapping.db")
    file.write_text(text + PLACEMENT, encoding="utf-8")
    shown = run("-c", str(file))
    assert shown.exit_code == 0
    assert "runs wherever it has replicas: no site; no site has reported demand" in shown.stdout
    one = mapper(tmp_path, sites, settings(requests=100, share=0.05))
    now = await start(one, sites)
    ask(one, now, {NEAR_ONE: 9.0, NEAR_TWO: 1.0}, requests=290)
    await one.step(now + EPOCH)
    shown = run("films.example", "-c", str(file))
    for part in ("10.0 handshakes per second", "replicas: 1 (no updates", NEAR_ONE, "90.0 %", "1 frankfurt", "locality"):
        assert part in shown.stdout
    assert "the next epoch removes 2 tokyo, 3, after 10 more handshakes" in shown.stdout
    answer = json.loads(run("Films.Example.", "-c", str(file), "--json").stdout)
    (found,) = answer["services"]
    assert [one["share"] for one in found["demand"]] == pytest.approx([0.9, 0.1])
    assert (found["active"], found["planned"]) == ([1, 2, 3], [{"site": 1, "reason": "locality"}])
    ask(one, now, {NEAR_ONE: 9.0, NEAR_TWO: 1.0}, requests=10)
    await one.step(now + 2 * EPOCH)
    assert "begun with epoch 3: removes 2 tokyo, 3" in run("-c", str(file)).stdout
    # Sites in stage gone are not shown, even before the next decision.
    for seconds in (2, 6, 60):
        await one.step(now + 2 * EPOCH + seconds)
    found = json.loads(run("-c", str(file), "--json").stdout)["services"][0]
    assert (found["number"], list(found["sites"])) == (3, ["1"])
    shown = run("films.example", "-c", str(file)).stdout
    assert [line.split()[:3] for line in shown.splitlines() if "locality" in line or "not wanted" in line] == [
        ["1", "frankfurt", "active"]
    ]
    wrong = run("books.example", "-c", str(file))
    assert (wrong.exit_code, "use one of: films.example, small.example" in wrong.stderr) == (1, True)
    file.write_text(text, encoding="utf-8")
    assert "the section placement is missing: add it" in run("-c", str(file)).stderr
    assert config(PLACEMENT).placement is not None
