# SPDX-License-Identifier: Apache-2.0
"""Placement of records: counting in bounded memory, decisions, limits, and a store whose records follow their demand."""

from __future__ import annotations

import asyncio
import io
import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

from conftest import EXAMPLE
from frontage import cli
from frontage.config import loads
from frontage.config.records import RecordPlacement
from frontage.mapping.placement.policy import Policy
from frontage.mapping.placement.values import Parameters, PlacementError
from frontage_records import http
from frontage_records.jetstream.engine import JetStream
from frontage_records.placement.counting import DemandCounter, Requests
from frontage_records.placement.explain import ask, show
from frontage_records.placement.limits import MoveLimits
from frontage_records.placement.placer import Placer
from frontage_records.placement.planner import Epoch, Planner
from frontage_records.placement.progress import Progress
from frontage_records.placement.reports import SUBJECT, CapacityMeter, Report, Reporter, RoundTrips, read
from frontage_records.placement.service import PlacementService
from frontage_records.placement.view import metrics, summary
from frontage_records.record import Consistency
from frontage_records.ring import Ring
from frontage_records.server import counting
from nats_cluster import Cluster
from records_engines import close_all, cluster

__all__ = ["cluster"]

SITES = (1, 2, 3)
NONE = Requests(0, 0)
RTTS = {(1, 2): 93_000.0, (1, 3): 227_000.0, (2, 3): 167_000.0}


# Counting


def test_requests_are_counted_since_the_last_report() -> None:
    counter = DemandCounter()
    for number in range(12):
        counter.count("a", 1, writes=False)
        if number % 4 == 0:
            counter.count("a", 2, writes=True)
    assert counter.take() == {"a": {1: Requests(12, 0), 2: Requests(0, 3)}}
    assert counter.take() == {}
    counter.count("a", 2, writes=False)
    assert counter.take() == {"a": {2: Requests(1, 0)}}


@given(st.lists(st.sampled_from([f"r{number}" for number in range(30)]), max_size=300))
def test_frequent_records_are_kept_and_no_count_is_too_large(requests: list[str]) -> None:
    counter = DemandCounter(most=8)
    for guid in requests:
        counter.count(guid, 1, writes=False)
    assert len(counter) <= 8
    exact = Counter(requests)
    found = counter.take()
    for guid, number in exact.items():
        if number > len(requests) / 8:
            assert guid in found
    for guid, regions in found.items():
        assert regions[1].reads <= exact[guid]


def test_capacity_is_measured_from_cpu_time() -> None:
    meter = CapacityMeter()
    meter.add(50, 0.05)
    assert meter.capacity is None, "too few requests"
    meter.add(150, 0.15)
    assert meter.capacity == pytest.approx(1000)
    meter.add(1000, 2)
    assert meter.capacity == pytest.approx(875)


def test_round_trips_are_minima_and_silence_forgets_them() -> None:
    trips = RoundTrips()
    for seconds in (0.3, 0.1, 0.2):
        trips.add(2, seconds)
    assert trips.microseconds() == {2: pytest.approx(100_000)}
    trips.add(2, None)
    assert trips.microseconds() == {}


# Decisions


EPOCH_SECONDS = 10.0
INTERVAL = 1.25


def planner(**more: object) -> Planner:
    parameters = Parameters(min_replicas=1, max_replicas=1, alike=True, **more)  # type: ignore[arg-type]
    return Planner(SITES, parameters, Policy(requests=50, share=0.1, controllers=1), EPOCH_SECONDS, INTERVAL, groups=100)


def report(
    planner: Planner,
    now: float,
    demand: dict[int, dict[str, Requests]],
    capacity: float = 10_000,
    silent: int = 0,
    seconds: float = 1.0,
) -> None:
    """Send reports of all sites. ``demand``: requests by region and record, as the server of that region's site counts them."""
    for site in SITES:
        if site == silent:
            continue
        rtts = {b if a == site else a: rtt for (a, b), rtt in RTTS.items() if site in (a, b)}
        counts = {guid: {site: requests} for guid, requests in demand.get(site, {}).items()}
        for message in Report(site, f"server {site}", seconds, capacity, rtts, counts).messages():
            planner.on_report(*read(message), now)


def sites_after(epoch: Epoch) -> dict[str, tuple[int, ...]]:
    return {move.guid: move.after for move in epoch.moves}


def test_records_move_to_their_demand() -> None:
    plans = planner()
    report(plans, 0, {1: {"a": Requests(90, 1)}, 3: {"a": Requests(9, 0), "b": Requests(50, 5)}})
    epoch = plans.plan(0, {"a": (2,), "b": (1,), "deleted": (1,)})
    assert sites_after(epoch) == {"a": (1,), "b": (3,)}
    assert [move.guid for move in epoch.moves] == ["b", "a"], "first the one that saves most"
    report(plans, 1, {1: {"a": Requests(90, 1)}, 3: {"a": Requests(9, 0), "b": Requests(50, 5)}})
    assert plans.plan(1, {"a": (1,), "b": (3,)}).moves == []


def test_record_with_few_requests_waits() -> None:
    plans = planner()
    for number in range(1, 5):
        report(plans, number, {1: {"a": Requests(2, 0)}})
        epoch = plans.plan(number, {"a": (2,)})
        if epoch.moves:
            break
    assert number == 4, "60 requests and those that pay for the messages"


def test_gain_within_the_error_holds_the_record() -> None:
    plans = planner()
    report(plans, 0, {1: {"a": Requests(100, 0)}, 2: {"a": Requests(102, 0)}})
    epoch = plans.plan(0, {"a": (1,)})
    assert epoch.moves == []
    assert epoch.decisions["a"].is_held


def shares(total: int, *of_sites: float) -> dict[int, dict[str, Requests]]:
    """Return requests for the record "a" that are divided in this way between the regions."""
    return {site: {"a": Requests(round(total * share), 0)} for site, share in zip(SITES, of_sites, strict=True)}


def test_changed_demand_moves_the_record_also_within_the_error() -> None:
    plans = planner()
    report(plans, 0, shares(200, 0.90, 0.05, 0.05))
    assert plans.plan(0, {"a": (1,)}).moves == []
    report(plans, 10, shares(200, 0.49, 0.51, 0))
    epoch = plans.plan(10, {"a": (1,)})
    assert not epoch.decisions["a"].gain.is_significant
    assert sites_after(epoch) == {"a": (2,)}
    # Another sample of the same demand: now the record is at the site that was chosen for it, and a small gain holds it.
    report(plans, 20, shares(200, 0.51, 0.49, 0))
    epoch = plans.plan(20, {"a": (2,)})
    assert epoch.moves == []
    assert epoch.decisions["a"].is_held


def test_change_counts_until_the_record_may_move() -> None:
    plans = planner()
    report(plans, 0, shares(20, 1, 0, 0), seconds=10)
    plans.plan(0, {"a": (1,)})
    moves = []
    for now in (10, 20, 30):
        report(plans, now, shares(20, 0.45, 0.55, 0), seconds=10)
        moves.append(len(plans.plan(now, {"a": (1,)}).moves))
    assert moves == [0, 0, 1], "75 requests pay for the messages"


def test_requests_before_the_epoch_do_not_count() -> None:
    plans = planner()
    report(plans, 1, {1: {"a": Requests(50, 0)}}, seconds=1.25)
    report(plans, 2.25, {2: {"a": Requests(20, 5)}}, seconds=1.25)
    report(plans, 10, {2: {"a": Requests(20, 5)}}, seconds=1.25)
    demand = plans.demand(10)
    assert demand.counts == {"a": {2: Requests(40, 10)}}, "the first report begins before the epoch"
    assert demand.rate(demand.counts["a"][2].total) == pytest.approx(20)


def test_random_variation_is_not_a_change_of_demand() -> None:
    """Records that are equally well placed at two sites seldom move, whatever the sample size."""
    rng = random.Random(1)
    for number, most in ((20, 0.03), (500, 0.01)):
        changes = epochs = 0
        for _ in range(20):
            plans = planner()
            for now in range(0, 200, 10):
                drawn = Counter(rng.choices(SITES, (0.4, 0.4, 0.2), k=number))
                report(plans, now, {site: {"a": Requests(drawn[site], 0)} for site in SITES})
                decision = plans.plan(now, {"a": (1,)}).decisions["a"]
                epochs += 1
                changes += decision.wanted != (1,) and not decision.is_held and not decision.gain.is_significant
        assert changes / epochs <= most


def test_nearly_equal_sites_follow_demand_after_one_epoch() -> None:
    """The supercluster's demand (docs/results/auspice-supercluster.md): the best two sites save 5.6 ms against the old ones."""
    rng = random.Random(2)
    follows = 0
    for _ in range(100):
        parameters = Parameters(min_replicas=2, max_replicas=2, alike=True)
        plans = Planner(SITES, parameters, Policy(requests=30, share=0.25, controllers=1), 20, 2.5, 100)
        active = (3, 1)
        for now, shares in ((20, (0.15, 0.05, 0.8)), (40, (0.8, 0.15, 0.05))):
            for number in reversed(range(7)):
                drawn = Counter(rng.choices(SITES, shares, k=75))
                counts = {site: {"a": Requests(drawn[site], 0)} for site in SITES}
                report(plans, now - 2.5 * number, counts, seconds=2.5)
            epoch = plans.plan(now, {"a": active})
        follows += set(sites_after(epoch).get("a", active)) == {1, 2}
    assert follows >= 97


def test_silent_site_gets_no_records() -> None:
    plans = planner()
    report(plans, 0, {3: {"a": Requests(50, 0)}})
    # Its clients are served elsewhere, where they are counted as those of site 3.
    report(plans, 9, {}, silent=3)
    plans.on_report(Report(2, "server 2", 1.0, 1000, {1: RTTS[1, 2], 3: RTTS[2, 3]}, {"a": {3: Requests(50, 0)}}), 0, 1, 9)
    epoch = plans.plan(9, {"a": (1,)})
    assert sites_after(epoch) == {"a": (2,)}
    assert epoch.capacity[3] == 0


def test_more_demand_than_capacity_gives_the_fewest_replicas() -> None:
    plans = Planner(
        SITES, Parameters(min_replicas=1, alike=True), Policy(50, share=0.1, controllers=1), EPOCH_SECONDS, INTERVAL, 100
    )
    demand = {1: {"a": Requests(90, 30)}, 3: {"a": Requests(9, 0)}}
    for capacity, replicas in ((10_000, 3), (50, 1)):
        report(plans, 0, demand, capacity)
        epoch = plans.plan(0, {"a": (1,)})
        assert len(epoch.decisions["a"].wanted) == replicas
    assert epoch.load.shortfall > 0


def test_without_reports_nothing_is_decided() -> None:
    plans = planner()
    with pytest.raises(PlacementError, match="no record server has reported demand"):
        plans.plan(0, {"a": (1,)})
    for message in Report(1, "s", 1.0, None, {}, {"a": {1: Requests(1, 1)}}).messages():
        plans.on_report(*read(message), 0)
    with pytest.raises(PlacementError, match="measure its capacity"):
        plans.plan(0, {"a": (1,)})


def test_reports_in_parts_count_when_complete() -> None:
    demand = {f"record-{number}": {1: Requests(2, 1)} for number in range(1200)}
    parts = [read(message) for message in Report(1, "s", 1.0, 10.0, {2: 1.5}, demand).messages()]
    assert [part for _, part, _ in parts] == [0, 1, 2]
    plans = planner()
    for report_, part, number in parts:
        assert plans.demand(0).counts == {}
        plans.on_report(report_, part, number, 0)
    assert plans.demand(0).counts == demand


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"site": 1, "demand": [1]}'])
def test_invalid_reports_are_rejected(data: bytes) -> None:
    with pytest.raises(ValueError, match="invalid load report"):
        read(data)


@pytest.mark.parametrize("seed", range(5))
def test_limits_hold_over_any_second(seed: int) -> None:
    rng, limits = random.Random(seed), MoveLimits(moves_per_second=10, bytes_per_second=5000)
    now, moves = 0.0, []
    for _ in range(300):
        size = rng.randrange(1, 1000)
        now += limits.delay(size, now)
        moves.append((now, size))
    seconds = moves[-1][0]
    assert len(moves) <= 10 * (seconds + 1) + 1
    assert sum(size for _, size in moves) <= 5000 * (seconds + 1) + 1000
    assert max(len(moves) / 10, sum(size for _, size in moves) / 5000) > 0.9 * seconds


# A store whose records follow their demand

EPOCH = 1.0
SETTINGS = RecordPlacement(epoch=EPOCH, max_replicas=1, requests=50, share=0.1)


@pytest.fixture
async def stores(cluster: Cluster) -> AsyncIterator[dict[int, JetStream]]:
    await cluster.ready()
    found = {site: await JetStream.open(cluster.urls, site, SITES, replicas=1) for site in SITES}
    yield found
    await close_all(found.values())
    await cluster.clear()


async def test_placer_moves_records_and_explains(stores: dict[int, JetStream]) -> None:
    guids = [f"record-{number}" for number in range(6)]
    for guid in guids:
        await stores[1].put(guid, {"v": guid}, consistency=Consistency.TOTAL_WRITES)
        await stores[1].place(guid, [1])
    leads = [False]
    placer = Placer(stores[2], SITES, SETTINGS, 1, lambda: leads[0])
    running, done, reads = asyncio.create_task(placer.run()), asyncio.Event(), 0

    async def report(demand: dict[int, dict[str, Requests]]) -> None:
        for site in SITES:
            rtts = {b if a == site else a: rtt for (a, b), rtt in RTTS.items() if site in (a, b)}
            counts = {guid: {site: requests} for guid, requests in demand.get(site, {}).items()}
            for message in Report(site, f"server {site}", EPOCH / 8, 1000, rtts, counts).messages():
                await stores[1].connection.announce(SUBJECT, message)

    async def report_until_moved(demand: dict[int, dict[str, Requests]], wanted: dict[str, int]) -> None:
        while {guid: (await stores[1].sites(guid)) for guid in wanted} != {guid: (site,) for guid, site in wanted.items()}:
            await report(demand)
            await asyncio.sleep(EPOCH / 8)

    async def read_all() -> None:
        """Read all the time: a move must not let a read fail."""
        nonlocal reads
        while not done.is_set():
            for guid in guids:
                assert (await stores[3].get(guid)).value == {"v": guid}
                reads += 1
            await asyncio.sleep(0.01)

    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(read_all())
            demand = {2: dict.fromkeys(guids[:3], Requests(200, 1)), 3: dict.fromkeys(guids[3:], Requests(200, 1))}
            for _ in range(12):
                await report(demand)
                await asyncio.sleep(EPOCH / 8)
            assert placer.progress.epoch is None, "a controller that does not lead decides nothing"
            assert await ask(stores[1].connection, None, 5) is None
            leads[0] = True
            wanted = {guid: 2 if guid in guids[:3] else 3 for guid in guids}
            await report_until_moved(demand, wanted)
            # Demand moves, and the records follow.
            await report_until_moved({1: dict.fromkeys(guids, Requests(200, 1))}, dict.fromkeys(guids, 1))
            done.set()
        found = await ask(stores[3].connection, "record-0", 5)
        assert found is not None
        assert [one["guid"] for one in found["records"]] == ["record-0"]
        assert found["records"][0]["group"] == [1]
        assert found["records"][0]["demand"][0]["region"] == 1, "most requests come from there"
        assert found["moves"] == {"done": 12}
        values = {sample.name: sample.value for metric in metrics(placer.progress) for sample in metric.samples}
        assert values["frontage_records_placement_moves_total"] == 12
        assert reads > 100
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_server_counts_requests_by_region_and_reports_them(stores: dict[int, JetStream]) -> None:
    reporter = Reporter(stores[1], list(SITES), epoch=8)
    regions = {ip_network("127.0.2.0/24"): 2}
    runner = await http.start(stores[1], Ring(SITES, 3), "127.0.0.1", 0, on_request=counting(reporter, regions, 1))
    url = "http://{}:{}/records".format(*runner.addresses[0][:2])
    received: list[Report] = []

    async def on_report(message: object) -> None:
        received.append(read(message.data)[0])  # type: ignore[attr-defined]

    subscription = await stores[2].connection.listen(SUBJECT, on_report)
    running = asyncio.create_task(reporter.run())
    try:
        for address, number in (("127.0.2.7", 30), ("127.0.3.7", 10)):
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(local_addr=(address, 0))) as session:
                for _ in range(number):
                    async with session.patch(f"{url}/visits?consistency=counter", data=json.dumps({"n": 1})) as answer:
                        assert answer.status == 200
                    async with session.get(f"{url}/visits") as answer:
                        assert answer.status == 200
                async with session.get(f"{url}/missing") as answer:
                    assert answer.status == 404

        def counted(region: int) -> Requests:
            return sum((one.counts["visits"].get(region, NONE) for one in received if one.counts), NONE)

        async with asyncio.timeout(60):
            while counted(1).total < 20:
                await asyncio.sleep(0.05)
        assert (counted(2), counted(1)) == (Requests(30, 30), Requests(10, 10)), "each request is in one report"
        assert {guid for one in received for guid in one.counts} == {"visits"}, "failed requests do not count"
        assert set(received[-1].rtts) == {2, 3}
        assert received[-1].seconds == pytest.approx(reporter.interval, rel=0.5)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await subscription.unsubscribe()
        await runner.cleanup()


async def test_controller_places_records_as_its_configuration_asks(cluster: Cluster, stores: dict[int, JetStream]) -> None:
    section = f"site: {{id: 1, vtep: '2001:db8:101::1'}}\nrecords:\n  store: {','.join(cluster.urls)}\n  replicas: 1\n"
    without = loads(f"{EXAMPLE.read_text(encoding='utf-8')}\n{section}", EXAMPLE)
    text = f"{EXAMPLE.read_text(encoding='utf-8')}\n{section}  placement: {{epoch: 1, min_replicas: 1}}\n"
    await stores[1].put("guid", {})
    placement = PlacementService(lambda: True)
    try:
        await placement.follow(loads(text, EXAMPLE))
        async with asyncio.timeout(30):
            while not ((found := await ask(stores[1].connection, None, 5)) and found["records"]):
                for message in Report(1, "server", 0.1, 1000, {}, {"guid": {1: Requests(1, 0)}}).messages():
                    await stores[1].connection.announce(SUBJECT, message)
                await asyncio.sleep(0.1)
        assert found["capacity"] == {"1": 1000}
        assert {metric.name for metric in placement.metrics()} >= {"frontage_records_placement_epochs"}
        await placement.follow(without)
        assert await ask(stores[1].connection, None, 5) is None
        assert list(placement.metrics()) == []
    finally:
        await placement.close()


def test_command_needs_the_section_and_jetstream(tmp_path: Path) -> None:
    file = tmp_path / "frontage.yaml"
    for section, message in (
        ("  store: sqlite:///records.db\n", "the section records.placement is missing"),
        ("  store: sqlite:///records.db\n  placement: {}\n", "SQLite has one site"),
        ("  placement: {min_replicas: 3, max_replicas: 2}\n", "min_replicas is 3, max_replicas 2"),
        ("  placement: {requests: 20}\n", "share must be above 1 / requests"),
    ):
        file.write_text(f"{EXAMPLE.read_text(encoding='utf-8')}\nrecords:\n{section}", encoding="utf-8")
        done = CliRunner().invoke(cli.app, ["records", "placement", "--json", "-c", str(file)])
        assert done.exit_code == 1
        assert message in done.stdout


def test_command_shows_the_leaders_answer() -> None:
    plans = planner()
    report(plans, 0, {3: {"a": Requests(90, 1)}})
    progress = Progress(SITES, plans.plan(0, {"a": (2,)}))
    found = summary(progress, None, 5)
    out = Console(width=200, record=True, file=io.StringIO())
    show(json.loads(json.dumps(found)), out)
    text = out.export_text()
    assert "epoch 1: 1 records with demand, 1 placement groups" in text
    assert "3:100%" in text
    assert "moved" in text
