"""Placement beside the running mapping: what load reports do to the sites of services, and to what dispatchers are told."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dispatchers import StandIn, running
from frontage import cli
from frontage.mapping.compute.prefixes import parse
from frontage.mapping.control.mapper import Mapper
from frontage.mapping.demand.moves import Stage
from frontage.mapping.demand.reports import Report
from frontage.mapping.errors import StoreError
from frontage.mapping.settings import EndUsers, Placement, TendedDispatcher
from test_demand import ARTEMIS, PLACEMENT, config
from test_mapping_run import FILMS, NEAR_ONE, NEAR_TWO, addresses

NAME = FILMS.name
EPOCH = 100.0
NEAR_THREE = "203.0.113.0/24"


@pytest.fixture
def sites() -> Iterator[list[StandIn]]:
    with running(3) as all_:
        yield all_


def settings(**more: Any) -> Placement:
    about = {"epoch": EPOCH, "min_replicas": 1, "max_replicas": 1, "requests": 10, "share": 0.5, "drain": 50.0}
    about |= {"services": [{"name": NAME}], "sites": [{"site": site, "capacity": 100.0} for site in (1, 2, 3)]}
    return Placement.model_validate(about | more)


def mapper(
    folder: Path, sites: list[StandIn], placement: Placement | None, *, name: str = "one", probes_per_second: float = 0.0
) -> Mapper:
    dispatchers = tuple(TendedDispatcher(site=one.site, url=one.url) for one in sites)
    store = f"sqlite:///{folder}/mapping.db"
    end_users = EndUsers(store=store, dispatchers=dispatchers, probes_per_second=probes_per_second)
    found = Mapper(end_users, addresses(), (FILMS,), site=1, name=name, placement=placement)
    found._register()
    return found


async def begin(one: Mapper, sites: list[StandIn]) -> float:
    """A replica at each site, and a prefix of clients near each. Returns the time of the last round."""
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
    return {site: place.stage for site, place in one.store.places().get(NAME, {}).items()}


def document(one: Mapper) -> dict[str, Any]:
    """What was written of the service at the last epoch."""
    return one.store.views()[NAME]


def deployed(one: Mapper) -> tuple[int, ...]:
    """The sites that first flights of the service go to."""
    return one.tables.deployments[one.tables.services[NAME]].sites


def ask(one: Mapper, now: float, rates: dict[str, float], requests: int = 500) -> None:
    """Demand of these prefixes, as a site's switch has counted it."""
    seconds = requests / sum(rates.values())
    regions = {region(one, prefix): round(rate * seconds) for prefix, rate in rates.items()}
    one.store.tell(1, [Report(NAME, requests, seconds, regions)], now)


async def test_regions_are_apart_wherever_the_service_is(tmp_path: Path, sites: list[StandIn]) -> None:
    one = mapper(tmp_path, sites, settings())
    now = await begin(one, sites)
    assert deployed(one) == (1, 2, 3)
    assert len({region(one, prefix) for prefix in (NEAR_ONE, NEAR_TWO, NEAR_THREE)}) == 3
    ask(one, now, {NEAR_ONE: 10.0})
    await one.step(now + EPOCH)
    assert stages(one) == {1: Stage.ACTIVE, 2: Stage.LEAVING, 3: Stage.LEAVING}
    await one.step(now + EPOCH + 2)
    await one.step(now + EPOCH + 4)
    assert deployed(one) == (1,)
    assert len({region(one, prefix) for prefix in (NEAR_ONE, NEAR_TWO, NEAR_THREE)}) == 3


async def test_a_service_follows_its_demand_make_before_break(tmp_path: Path, sites: list[StandIn]) -> None:
    one = mapper(tmp_path, sites, settings())
    now = await begin(one, sites)
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
    # From now on both; clients are told of the new one at once.
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


async def test_a_move_waits_for_the_handshakes_that_pay_for_it(tmp_path: Path, sites: list[StandIn]) -> None:
    one = mapper(tmp_path, sites, settings(requests=100, share=0.05))
    now = await begin(one, sites)
    # From three sites to one: 8 messages, of what 0.05 leaves beside a report in 100.
    needed = max(300, 8 / (0.05 - 0.01))
    ask(one, now, {NEAR_ONE: 10.0}, requests=int(needed) - 1)
    await one.step(now + EPOCH)
    assert stages(one) == {}
    change = one.store.views()[NAME]["next"]
    assert (change["begun"], change["added"], change["removed"], change["handshakes_missing"]) == (False, [], [2, 3], 1)
    # Another controller takes over, and nothing that was counted is lost.
    two = mapper(tmp_path, sites, settings(requests=100, share=0.05), name="two")
    one.store.tell(1, [Report(NAME, 1, 0.1, None)], now)
    await two.step(now + EPOCH + 50)
    await two.step(now + 2 * EPOCH)
    assert two.engine is not None
    assert {site for site, stage in stages(two).items() if stage is Stage.ACTIVE} == {1}


async def test_a_move_is_within_two_epochs_and_says_so(tmp_path: Path, sites: list[StandIn]) -> None:
    one = mapper(tmp_path, sites, settings())
    now = await begin(one, sites)
    ask(one, now, {NEAR_ONE: 9.0, NEAR_TWO: 1.0})
    for seconds in (0, 4):
        await one.step(now + EPOCH + seconds)
    assert document(one)["move"] == {"shown": 2, "decided": 2, "active": 2}
    sites[1].replica(200, NAME, accepting=False)
    # Demand has moved in the middle of the third epoch: it is half here, half there, and the third site is between them.
    ask(one, now, {NEAR_ONE: 5.0, NEAR_TWO: 5.0}, requests=40)
    await one.step(now + 2 * EPOCH)
    assert deployed(one) == (1,)
    ask(one, now, {NEAR_ONE: 1.0, NEAR_TWO: 9.0}, requests=80)
    await one.step(now + 3 * EPOCH)
    assert (document(one)["number"], stages(one)) == (4, {1: Stage.LEAVING, 2: Stage.STARTING})
    assert document(one)["move"]["decided"] == 4
    assert document(one)["move"]["active"] is None
    # Another controller takes over, whose epoch ends at once; then the replica is there.
    two = mapper(tmp_path, sites, settings(), name="two")
    await two.step(now + 4 * EPOCH)
    await two.step(now + 4 * EPOCH + 2)
    sites[1].replica(200, NAME)
    await two.step(now + 4 * EPOCH + 4)
    assert document(one)["move"] == {"shown": 4, "decided": 4, "active": 5}
    assert two.placer is not None
    assert two.placer.last_moves == {NAME: document(one)["move"]}


async def test_what_may_be_chance_moves_nothing_until_it_is_none(tmp_path: Path, sites: list[StandIn]) -> None:
    one = mapper(tmp_path, sites, settings())
    now = await begin(one, sites)
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


async def test_handshakes_that_wait_at_a_site_make_it_farther(tmp_path: Path, sites: list[StandIn]) -> None:
    one = mapper(tmp_path, sites, settings())
    now = await begin(one, sites)
    # Sites 1 and 2 are 50 and 60 ms from NEAR_THREE, and its own is not there.
    sites[2].stop()
    ask(one, now, {NEAR_THREE: 10.0})
    await one.step(now + EPOCH)
    assert {site for site, stage in stages(one).items() if stage.wanted} == {2}
    assert document(one)["load_latency_us"] == {"1": 0.0, "2": 0.0, "3": 0.0}
    # What one network waits is its own affair; what most do is the site's.
    for prefix, rtt, count in ((NEAR_ONE, 70_000, 3), (NEAR_TWO, 31_000, 2), (NEAR_THREE, 100_000, 4)):
        sites[1].measure(prefix, rtt, count=count)
    await one.step(now + EPOCH + 2)
    ask(one, now, {NEAR_THREE: 10.0})
    await one.step(now + 2 * EPOCH)
    assert document(one)["load_latency_us"]["2"] == pytest.approx(30_000)
    assert {site for site, stage in stages(one).items() if stage.wanted} == {1}
    # Nobody waits there now: half as much each epoch, until it is near again.
    for epoch in range(3, 6):
        ask(one, now, {NEAR_THREE: 10.0})
        await one.step(now + epoch * EPOCH)
    assert document(one)["load_latency_us"]["2"] == pytest.approx(30_000 / 8)
    assert {site for site, stage in stages(one).items() if stage.wanted} == {2}


async def test_handshakes_that_another_controller_hears_of_wait_as_long(tmp_path: Path, sites: list[StandIn]) -> None:
    one = mapper(tmp_path, sites, settings())
    now = await begin(one, sites)
    two = mapper(tmp_path, sites, settings(), name="two")
    waited: list[float] = []
    for epoch, rtt in enumerate((21_000, 41_000), 1):
        # Each hears of some, and only one of them places.
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


async def test_what_the_store_did_not_take_is_decided_again(
    tmp_path: Path, sites: list[StandIn], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = mapper(tmp_path, sites, settings())
    now = await begin(one, sites)
    ask(one, now, {NEAR_ONE: 10.0}, requests=40)
    assert one.placer is not None
    with monkeypatch.context() as patch:

        def lost(*_: object) -> None:
            raise StoreError("the disk is full")

        patch.setattr(one.store, "view", lost)
        await one.step(now + EPOCH)
        assert one.counters.error == "the disk is full"
        assert stages(one) == {}
    await one.step(now + EPOCH + 2)
    assert one.counters.error is None
    assert {site for site, stage in stages(one).items() if stage.wanted} == {1}


async def test_a_site_that_is_gone_is_replaced(tmp_path: Path, sites: list[StandIn]) -> None:
    one = mapper(tmp_path, sites, settings())
    now = await begin(one, sites)
    ask(one, now, {NEAR_ONE: 10.0})
    for seconds in (0, 4):
        await one.step(now + EPOCH + seconds)
    assert deployed(one) == (1,)
    sites[0].stop()
    await one.step(now + EPOCH + 6)
    # It is nowhere where it should be: rather anywhere than nowhere.
    assert deployed(one) == (2, 3)
    one.store.tell(2, [Report(NAME, 500, 50.0, None)], now)
    await one.step(now + 2 * EPOCH)
    await one.step(now + 2 * EPOCH + 2)
    assert stages(one) == {1: Stage.LEAVING, 2: Stage.ACTIVE}
    assert deployed(one) == (2,)


async def test_what_cannot_be_placed_stays_and_is_said(
    tmp_path: Path, sites: list[StandIn], caplog: pytest.LogCaptureFixture
) -> None:
    one = mapper(tmp_path, sites, settings(min_replicas=3, max_replicas=3))
    now = await begin(one, sites)
    sites[2].stop()
    ask(one, now, {NEAR_ONE: 10.0})
    await one.step(now + 10)
    with caplog.at_level(logging.WARNING):
        await one.step(now + EPOCH)
    assert "2 usable sites cannot hold 3 replicas of a record" in caplog.text
    assert one.placer is not None
    assert one.placer.counters.error is not None
    assert stages(one) == {}
    assert deployed(one) == (1, 2)


async def test_that_nothing_could_be_placed_is_shown_until_it_can(tmp_path: Path, sites: list[StandIn]) -> None:
    file = tmp_path / "frontage.yaml"
    text = ARTEMIS.read_text(encoding="utf-8").replace("mapping: artemis-mapping.json", "end_users:\n  store: sqlite:///mapping.db")
    file.write_text(text + PLACEMENT, encoding="utf-8")
    why = "2 usable sites cannot hold 3 replicas of a record: lower min_replicas or add sites"
    three = settings(min_replicas=3, max_replicas=3)
    one = mapper(tmp_path, sites, three)
    now = await begin(one, sites)
    sites[2].stop()
    ask(one, now, {NEAR_ONE: 10.0})
    await one.step(now + 10)
    await one.step(now + EPOCH)
    assert f"wherever it has replicas: 1 frankfurt, 2 tokyo; {why}" in run(NAME, "-c", str(file)).stdout
    # Another controller takes over, and the site is back.
    two = mapper(tmp_path, sites, three, name="two")
    sites[2].start()
    for seconds in (50, 52, 54):
        await two.step(now + EPOCH + seconds)
    await two.step(now + 3 * EPOCH)
    shown = run(NAME, "-c", str(file)).stdout
    assert (why in shown, "10.0 handshakes a second" in shown) == (False, True)
    sites[2].stop()
    await two.step(now + 3 * EPOCH + 2)
    await two.step(now + 4 * EPOCH)
    shown = run(NAME, "-c", str(file)).stdout
    assert (f"the last epoch placed nothing: {why}" in shown, "10.0 handshakes a second" in shown) == (True, True)


async def test_demand_above_capacity_leaves_the_least_and_is_said(
    tmp_path: Path, sites: list[StandIn], caplog: pytest.LogCaptureFixture
) -> None:
    services = [{"name": NAME, "updates": 5.0}]
    one = mapper(tmp_path, sites, settings(services=services, max_replicas=3))
    now = await begin(one, sites)
    ask(one, now, {NEAR_ONE: 5000.0})
    with caplog.at_level(logging.WARNING):
        await one.step(now + EPOCH)
    assert "demand takes 5005 handshakes a second, and mu of the sites' capacity is 210: each service has" in caplog.text
    assert {site for site, stage in stages(one).items() if stage.wanted} == {1}


async def test_demand_from_nowhere_moves_nothing(tmp_path: Path, sites: list[StandIn]) -> None:
    one = mapper(tmp_path, sites, settings())
    now = await begin(one, sites)
    one.store.tell(1, [Report(NAME, 500, 50.0, {0: 200, 60000: 300}), Report("gone.example", 500, 500.0, {1: 500})], now)
    await one.step(now + EPOCH)
    assert stages(one) == {}
    assert one.store.views() == {}
    assert deployed(one) == (1, 2, 3)


async def test_without_the_section_services_are_everywhere_again(tmp_path: Path, sites: list[StandIn]) -> None:
    one = mapper(tmp_path, sites, settings())
    now = await begin(one, sites)
    ask(one, now, {NEAR_ONE: 10.0})
    for seconds in (0, 4):
        await one.step(now + EPOCH + seconds)
    assert deployed(one) == (1,)
    two = mapper(tmp_path, sites, None, name="two")
    await two.step(now + EPOCH + 100)
    await two.step(now + EPOCH + 102)
    assert (stages(two), two.store.views(), deployed(two)) == ({}, {}, (1, 2, 3))


async def test_new_prefixes_are_probed_as_far_as_there_is_room(tmp_path: Path, sites: list[StandIn]) -> None:
    one = mapper(tmp_path, sites, settings(), probes_per_second=10.0)
    now = await begin(one, sites)
    assert one.prober.under_way is not None
    await one.prober.under_way
    seen = [parse(prefix) for prefix in ("192.0.2.0/24", "2001:db8:77::/48")]
    assert one.store.saw(seen, now, limit=10) == 0
    assert one.store.saw([*seen, parse("2001:db8:78::/48"), parse("2001:db8:79::/48")], now, limit=3) == 1
    await one.step(now + 2)
    await one.prober.under_way
    for there in sites:
        assert {"192.0.2.1", "2001:db8:77::1", "2001:db8:78::1"} <= set(there.probed)
        assert "2001:db8:79::1" not in there.probed
    # What is old is forgotten, which is nothing that other controllers have to read again.
    version = one.store.version()
    one.store.forget_seen(now)
    assert one.store.version() == version
    one.store.forget_seen(now + 1)
    assert (one.store.unmeasured(1, 0.0, "", 100), one.store.version()) == ([], version + 1)
    await one.step(now + 4)
    assert one.store.saw(seen, now, limit=10) == 0
    await one.step(now + one.settings.max_age + 60)
    assert one.store.saw([parse("2001:db8:79::/48")], now, limit=1) == 0
    await one.prober.under_way


def run(*arguments: str) -> Any:
    return CliRunner().invoke(cli.app, ["placement", *arguments])


async def test_the_command_shows_demand_replicas_and_what_comes(tmp_path: Path, sites: list[StandIn]) -> None:
    file = tmp_path / "frontage.yaml"
    text = ARTEMIS.read_text(encoding="utf-8").replace("mapping: artemis-mapping.json", "end_users:\n  store: sqlite:///mapping.db")
    file.write_text(text + PLACEMENT, encoding="utf-8")
    shown = run("-c", str(file))
    assert shown.exit_code == 0
    assert "wherever it has replicas: no site; no site has reported demand" in shown.stdout
    one = mapper(tmp_path, sites, settings(requests=100, share=0.05))
    now = await begin(one, sites)
    ask(one, now, {NEAR_ONE: 9.0, NEAR_TWO: 1.0}, requests=290)
    await one.step(now + EPOCH)
    shown = run("films.example", "-c", str(file))
    for part in ("10.0 handshakes a second", "replicas: 1 (no updates", NEAR_ONE, "90.0 %", "1 frankfurt", "locality"):
        assert part in shown.stdout
    assert "the next epoch leaves 2 tokyo, 3, after 10 more handshakes" in shown.stdout
    answer = json.loads(run("Films.Example.", "-c", str(file), "--json").stdout)
    (found,) = answer["services"]
    assert [one["share"] for one in found["demand"]] == pytest.approx([0.9, 0.1])
    assert (found["active"], found["planned"]) == ([1, 2, 3], [{"site": 1, "reason": "locality"}])
    ask(one, now, {NEAR_ONE: 9.0, NEAR_TWO: 1.0}, requests=10)
    await one.step(now + 2 * EPOCH)
    assert "begun with epoch 3: leaves 2 tokyo, 3" in run("-c", str(file)).stdout
    # Sites that are gone are not shown any longer, though nothing was decided since.
    for seconds in (2, 6, 60):
        await one.step(now + 2 * EPOCH + seconds)
    found = json.loads(run("-c", str(file), "--json").stdout)["services"][0]
    assert (found["number"], list(found["sites"])) == (3, ["1"])
    shown = run("films.example", "-c", str(file)).stdout
    assert [line.split()[:3] for line in shown.splitlines() if "locality" in line or "not wanted" in line] == [
        ["1", "frankfurt", "active"]
    ]
    wrong = run("books.example", "-c", str(file))
    assert (wrong.exit_code, "placed are: films.example, small.example" in wrong.stderr) == (1, True)
    file.write_text(text, encoding="utf-8")
    assert "has no placement; add the section" in run("-c", str(file)).stderr
    assert config(PLACEMENT).placement is not None
