# SPDX-License-Identifier: Apache-2.0
"""Placement of records: counting in bounded memory, decisions, limits, and a store whose records follow their demand."""

from __future__ import annotations

import asyncio
import io
import json
import random
import time
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
from frontage_records.placement.counting import DemandCounter, Rates
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
RTTS = {(1, 2): 93_000.0, (1, 3): 227_000.0, (2, 3): 167_000.0}


# Counting


def test_steady_demand_gives_its_rates() -> None:
    counter = DemandCounter(half_life=10, now=0)
    for number in range(12_000):
        at = number / 100
        counter.count("a", 1, at, writes=False)
        if number % 4 == 0:
            counter.count("a", 2, at, writes=True)
    found = counter.rates(120)["a"]
    assert found[1].reads == pytest.approx(100, rel=0.01)
    assert found[2].writes == pytest.approx(25, rel=0.01)
    assert (found[1].writes, found[2].reads) == (0, 0)


def test_rates_are_right_from_the_first_half_life() -> None:
    counter = DemandCounter(half_life=100, now=0)
    for number in range(200):
        counter.count("a", 1, number / 100, writes=False)
    assert counter.rates(2)["a"][1].reads == pytest.approx(100, rel=0.01)


def test_demand_that_ended_decays_also_over_long_times() -> None:
    counter = DemandCounter(half_life=1, now=0)
    for number in range(1000):
        counter.count("a", 1, number / 1000, writes=False)
    before = counter.rates(1)["a"][1].reads
    assert counter.rates(5)["a"][1].reads < before / 14
    counter.count("b", 1, 500, writes=False)
    assert set(counter.rates(500, least=0.01)) == {"b"}


@given(st.lists(st.sampled_from([f"r{number}" for number in range(30)]), max_size=300))
def test_frequent_records_are_kept_and_no_count_is_too_large(requests: list[str]) -> None:
    counter = DemandCounter(half_life=1e9, now=0, most=8)
    for guid in requests:
        counter.count(guid, 1, 0, writes=False)
    assert len(counter) <= 8
    exact = Counter(requests)
    found = counter.rates(1)
    for guid, number in exact.items():
        if number > len(requests) / 8:
            assert guid in found
    for guid, regions in found.items():
        assert regions[1].reads <= exact[guid] * 1.001


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


def planner(**more: object) -> Planner:
    parameters = Parameters(min_replicas=1, max_replicas=1, alike=True, **more)  # type: ignore[arg-type]
    return Planner(SITES, parameters, Policy(requests=50, share=0.1, controllers=1), epoch=10, interval=1, groups=100)


def report(planner: Planner, now: float, demand: dict[int, dict[str, Rates]], capacity: float = 10_000, silent: int = 0) -> None:
    """Send reports of all sites. ``demand``: rates by region and record, as the server of that region's site counts them."""
    for site in SITES:
        if site == silent:
            continue
        rtts = {b if a == site else a: rtt for (a, b), rtt in RTTS.items() if site in (a, b)}
        rates = {guid: {site: rate} for guid, rate in demand.get(site, {}).items()}
        for message in Report(site, f"server {site}", capacity, rtts, rates).messages():
            planner.on_report(*read(message), now)


def sites_after(epoch: Epoch) -> dict[str, tuple[int, ...]]:
    return {move.guid: move.after for move in epoch.moves}


def test_records_move_to_their_demand() -> None:
    plans = planner()
    report(plans, 0, {1: {"a": Rates(90, 1)}, 3: {"a": Rates(9, 0), "b": Rates(50, 5)}})
    epoch = plans.plan(0, {"a": (2,), "b": (1,), "deleted": (1,)})
    assert sites_after(epoch) == {"a": (1,), "b": (3,)}
    assert [move.guid for move in epoch.moves] == ["b", "a"], "first the one that saves most"
    report(plans, 1, {1: {"a": Rates(90, 1)}, 3: {"a": Rates(9, 0), "b": Rates(50, 5)}})
    assert plans.plan(1, {"a": (1,), "b": (3,)}).moves == []


def test_record_with_few_requests_waits() -> None:
    plans = planner()
    for number in range(1, 5):
        report(plans, number, {1: {"a": Rates(2, 0)}})
        epoch = plans.plan(number, {"a": (2,)})
        if epoch.moves:
            break
    assert number == 4, "60 requests and those that pay for the messages"


def test_gain_within_the_error_holds_the_record() -> None:
    plans = planner()
    report(plans, 0, {1: {"a": Rates(10.0, 0)}, 2: {"a": Rates(10.2, 0)}})
    epoch = plans.plan(0, {"a": (1,)})
    assert epoch.moves == []
    assert epoch.decisions["a"].is_held


def test_silent_site_gets_no_records() -> None:
    plans = planner()
    report(plans, 0, {3: {"a": Rates(50, 0)}})
    # Its clients are served elsewhere, where they are counted as those of site 3.
    report(plans, 9, {}, silent=3)
    plans.on_report(Report(2, "server 2", 1000, {1: RTTS[1, 2], 3: RTTS[2, 3]}, {"a": {3: Rates(50, 0)}}), 0, 1, 9)
    epoch = plans.plan(9, {"a": (1,)})
    assert sites_after(epoch) == {"a": (2,)}
    assert epoch.capacity[3] == 0


def test_more_demand_than_capacity_gives_the_fewest_replicas() -> None:
    plans = Planner(SITES, Parameters(min_replicas=1, alike=True), Policy(50, share=0.1, controllers=1), 10, 1, 100)
    demand = {1: {"a": Rates(90, 30)}, 3: {"a": Rates(9, 0)}}
    for capacity, replicas in ((10_000, 3), (50, 1)):
        report(plans, 0, demand, capacity)
        epoch = plans.plan(0, {"a": (1,)})
        assert len(epoch.decisions["a"].wanted) == replicas
    assert epoch.load.shortfall > 0


def test_without_reports_nothing_is_decided() -> None:
    plans = planner()
    with pytest.raises(PlacementError, match="no record server has reported demand"):
        plans.plan(0, {"a": (1,)})
    for message in Report(1, "s", None, {}, {"a": {1: Rates(1, 1)}}).messages():
        plans.on_report(*read(message), 0)
    with pytest.raises(PlacementError, match="measure its capacity"):
        plans.plan(0, {"a": (1,)})


def test_reports_in_parts_count_when_complete() -> None:
    demand = {f"record-{number}": {1: Rates(1, 0.5)} for number in range(1200)}
    parts = [read(message) for message in Report(1, "s", 10.0, {2: 1.5}, demand).messages()]
    assert [part for _, part, _ in parts] == [0, 1, 2]
    plans = planner()
    for report_, part, number in parts:
        assert plans.demand(0) == {}
        plans.on_report(report_, part, number, 0)
    assert plans.demand(0) == demand


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

    async def report(demand: dict[int, dict[str, Rates]]) -> None:
        for site in SITES:
            rtts = {b if a == site else a: rtt for (a, b), rtt in RTTS.items() if site in (a, b)}
            rates = {guid: {site: rate} for guid, rate in demand.get(site, {}).items()}
            for message in Report(site, f"server {site}", 1000, rtts, rates).messages():
                await stores[1].connection.announce(SUBJECT, message)

    async def report_until_moved(demand: dict[int, dict[str, Rates]], wanted: dict[str, int]) -> None:
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
            demand = {2: dict.fromkeys(guids[:3], Rates(200, 1)), 3: dict.fromkeys(guids[3:], Rates(200, 1))}
            for _ in range(12):
                await report(demand)
                await asyncio.sleep(EPOCH / 8)
            assert placer.progress.epoch is None, "a controller that does not lead decides nothing"
            assert await ask(stores[1].connection, None, 5) is None
            leads[0] = True
            wanted = {guid: 2 if guid in guids[:3] else 3 for guid in guids}
            await report_until_moved(demand, wanted)
            # Demand moves, and the records follow.
            await report_until_moved({1: dict.fromkeys(guids, Rates(200, 1))}, dict.fromkeys(guids, 1))
            done.set()
        found = await ask(stores[3].connection, "record-0", 5)
        assert found is not None
        assert [one["guid"] for one in found["records"]] == ["record-0"]
        assert found["records"][0]["group"] == [1]
        assert [row["region"] for row in found["records"][0]["demand"]] == [1]
        assert found["moves"] == {"done": 12}
        values = {sample.name: sample.value for metric in metrics(placer.progress) for sample in metric.samples}
        assert values["frontage_records_placement_moves_total"] == 12
        assert reads > 100
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_server_counts_requests_by_region_and_reports_them(stores: dict[int, JetStream]) -> None:
    reporter = Reporter(stores[1], list(SITES), epoch=2)
    # Without decay, so that the result does not depend on the time that the requests take.
    reporter.counter = DemandCounter(half_life=1e6, now=time.monotonic())
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
        received.clear()
        async with asyncio.timeout(60):
            # The second report from now on has all requests.
            while len(received) < 2:
                await asyncio.sleep(0.05)
        by_region = received[-1].demand["visits"]
        assert by_region[2].reads == pytest.approx(by_region[2].writes, rel=0.1)
        assert by_region[2].reads == pytest.approx(3 * by_region[1].reads, rel=0.1)
        assert set(received[-1].demand) == {"visits"}, "failed requests do not count"
        assert set(received[-1].rtts) == {2, 3}
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
                for message in Report(1, "server", 1000, {}, {"guid": {1: Rates(1, 0)}}).messages():
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
    report(plans, 0, {3: {"a": Rates(90, 1)}})
    progress = Progress(SITES, plans.plan(0, {"a": (2,)}))
    found = summary(progress, None, 5)
    out = Console(width=200, record=True, file=io.StringIO())
    show(json.loads(json.dumps(found)), out)
    text = out.export_text()
    assert "epoch 1: 1 records with demand, 1 placement groups" in text
    assert "3:100%" in text
    assert "moved" in text
