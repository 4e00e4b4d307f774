# SPDX-License-Identifier: Apache-2.0
"""Artemis' testbed: distances, routes and names follow the plan, and clients reach the expected sites."""

import shutil
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from frontage_demo.artemis import events, failover, hostsfile, report, tables
from frontage_demo.artemis.distances import least
from frontage_demo.artemis.mappingstore import Rtt
from frontage_demo.artemis.measure import Sample, by_anycast, by_artemis, by_dns, sample
from frontage_demo.artemis.names import REGIONAL_ZONE, ZONE
from frontage_demo.artemis.programs import find
from frontage_demo.artemis.results import Result, read, read_failover, save, save_failover
from frontage_demo.artemis.scenarios import (
    AUTHORITY,
    SCENARIOS,
    Published,
    Scenario,
    anycast,
    cache_plan,
    extra,
    region_of,
    regional,
)
from frontage_demo.artemis.site import Programs
from frontage_demo.artemis.testbed import LONG_OBJECT, ArtemisTestbed
from frontage_testbed.datacentre.deployment import DeploymentError
from frontage_testbed.sandbox import Sandbox
from frontage_testbed.wan.addresses import PORT
from frontage_testbed.wan.latency import Latencies
from testbeds import Sandboxed, needs_root

SMALL = Scenario(
    "small",
    "Small",
    ("ap-northeast-1", "eu-central-1"),
    # Anycast leads one of the two clients to the other site.
    Published((0, 0, 0), (0, 0, 0), 0.5, 0.0),
    {"Japan": "ap-northeast-1", "Germany": "eu-central-1"},
)


LEAST = {"artemis": (21.4, 39.6), "dns": (39.3, 57.5), "anycast": (19.9, 39.9), "regional": (41.0, 60.9)}
"""Latencies from distances in the global deployment."""


def programs() -> Programs:
    try:
        return find()
    except DeploymentError as error:
        pytest.skip(str(error))


def test_published_matrix_is_complete_and_plausible() -> None:
    latencies = Latencies.published()
    assert len(latencies.locations) == 21
    # The speed of light in glass requires at least 160 ms between Frankfurt and Sydney, 16,500 km apart.
    assert latencies.rtt("eu-central-1", "ap-southeast-2") > 160
    assert latencies.by_distance("eu-west-2", latencies.locations)[:2] == ["eu-west-2", "eu-west-3"]


@pytest.mark.parametrize("lines", [["region,a,b", "a,1,2"], ["region,a", "a,0"], ["region,a,b", "a,1,2", "b,1"]])
def test_rejects_malformed_matrix(lines: list[str]) -> None:
    with pytest.raises(ValueError, match=r"locations|positive"):
        Latencies.parse(lines)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_anycast_routes_are_as_suboptimal_as_published(scenario: Scenario) -> None:
    latencies = Latencies.published()
    routes = anycast(latencies, scenario, seed=1)
    assert routes == anycast(latencies, scenario, seed=1)
    best = {location: latencies.by_distance(location, scenario.sites)[0] for location in routes}
    wrong = sum(routes[location] != best[location] for location in routes)
    assert wrong == round(scenario.published.suboptimal * len(routes))
    assert extra(latencies, best, routes) == pytest.approx(scenario.published.extra, abs=1.5)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_regional_anycast_stays_in_the_region(scenario: Scenario) -> None:
    latencies = Latencies.published()
    routes = anycast(latencies, scenario, seed=1)
    for location, (region, site) in regional(latencies, scenario, routes).items():
        of_region = [s for s in scenario.sites if region_of(s) == region]
        if region_of(location) != region:  # a continent without a site
            assert region_of(location) not in map(region_of, scenario.sites)
            assert latencies.by_distance(location, scenario.sites)[0] in of_region
        assert site == (routes[location] if routes[location] in of_region else latencies.by_distance(location, of_region)[0])


def test_cache_plan_has_requested_share_of_hits() -> None:
    plan = cache_plan(["a", "b", "c"], rounds=200, hit_rate=0.835, seed=7)
    assert sum(map(sum, plan.values())) == 501
    assert {len(hits) for hits in plan.values()} == {200}
    assert plan == cache_plan(["a", "b", "c"], rounds=200, hit_rate=0.835, seed=7)


def test_unmet_redundancy_goals_are_reported() -> None:
    fast = [events.Try(events.LOST, 2, "a", 100.0), events.Try(events.DEAD, 2, "b", 400.0)]
    assert events.unmet([*fast, events.Try(events.LOST, 1, "a", 1100.0), events.Try(events.LOST, 1, None, 0.0)]) == []
    late = [*fast, events.Try(events.LOST, 2, "a", 1100.0), events.Try(events.DEAD, 2, None, 0.0)]
    missed = events.unmet([*late, events.Try(events.MAPPED, 1, None, 0.0)])
    assert [line.split(" ", 1)[0] for line in missed] == ["1", "1", "1"]
    _, rows = tables.events(late)
    assert [row[:5] for row in rows] == [[events.LOST, "2", "2", "0", "1"], [events.DEAD, "2", "2", "1", "0"]]


def answered(testbed: ArtemisTestbed, total: int) -> dict[str, int]:
    """Return how many requests each site's plain server has answered, once its log has all `total` requests."""
    while True:
        counts = {location: testbed.site(location).plain_requests for location in SMALL.sites}
        if sum(counts.values()) >= total:
            return counts
        time.sleep(0.05)


def played(box: Sandbox, made_of: Programs, *, dispatched: bool) -> dict[str, Any]:
    """Return what two clients of a small testbed observed."""
    seen: dict[str, Any] = {}
    with ArtemisTestbed(SMALL, made_of, box.scratch / "testbed", seed=1, dispatched=dispatched) as testbed:
        seen["routes"] = {client: testbed.routes[location] for client, location in SMALL.clients.items()}
        for number, (client, at) in enumerate(SMALL.clients.items()):
            anycast = sample(testbed, client, "anycast", by_anycast(testbed, client))
            miss = sample(testbed, client, "dns", by_dns(testbed, client, "www"))
            seen[client] = {
                "anycast": anycast.handshake,
                "rtt": testbed.latencies.rtt(at, testbed.routes[at]),
                "miss": miss.resolution,
                "authority": testbed.latencies.rtt(at, AUTHORITY),
                "dns": miss.site,
            }
            before = answered(testbed, 3 * number + 2)
            regional = sample(testbed, client, "regional", by_dns(testbed, client, "www", REGIONAL_ZONE))
            seen[client] |= {"regional": regional.handshake, "regional name": regional.resolution}
            after = answered(testbed, 3 * number + 3)
            seen[client]["answered"] = [site for site in SMALL.sites if after[site] > before[site]]
            seen[client]["nearest"] = testbed.latencies.rtt(at, at)
            by_name = by_artemis(testbed, client)
            seen[client]["artemis"] = sample(testbed, client, "artemis", by_name).site
            seen[client]["migrated"] = by_name["seconds"]["migrated"] is not None
            # The client leaves the dispatcher, and the detour if anycast leads to the other site.
            if shutil.which("gtlsclient"):
                seen[client]["ngtcp2"] = by_hosts_file(testbed, client, box.scratch / client)
    return seen


def by_hosts_file(testbed: ArtemisTestbed, client: str, folder: Path) -> dict[str, Any]:
    """Download with ngtcp2's client, which gets the service address from a hosts file."""
    command = ["gtlsclient", "--quiet", "--exit-on-all-streams-close", f"--download={folder}"]
    return asdict(hostsfile.download(testbed, client, [*command, ZONE, str(PORT), f"https://{ZONE}{LONG_OBJECT}"], folder))


@needs_root
@pytest.mark.slow
@pytest.mark.parametrize("dispatched", [False, True], ids=["decided", "dispatched"])
def test_clients_reach_sites_of_routes_and_names(dispatched: bool, tmp_path: Path) -> None:
    made_of = programs()
    seen = Sandboxed(lambda box: played(box, made_of, dispatched=dispatched), tmp_path).result()
    assert sorted(seen["routes"].values()) in (["ap-northeast-1"] * 2, ["eu-central-1"] * 2)
    for client, location in SMALL.clients.items():
        met = seen[client]
        assert met["dns"] == location
        # No measurement is below its distance.
        assert met["anycast"] >= met["rtt"]
        assert met["miss"] >= met["authority"]
        # Each client has a region of its own, with one site.
        assert met["answered"] == [location]
        assert met["regional"] >= met["nearest"]
        assert met["regional name"] >= met["authority"]
        # This includes the client that anycast leads to the other site.
        assert met["artemis"] == location
        assert met["migrated"]
        if "ngtcp2" in met:
            # An unmodified client starts at the service address and leaves it once its replica's own address answers.
            bound = met["ngtcp2"]
            assert bound["whole"], bound["log"]
            assert (bound["site"], bound["after"]) == (location, 0)
            assert bound["before"] > 0


def led(box: Sandbox, made_of: Programs) -> dict[str, Any]:
    """Return what a client under a computed mapping observed, and all files with a written mapping."""
    (client,) = events.DETOUR.clients
    with ArtemisTestbed(events.DETOUR, made_of, box.scratch / "testbed", seed=1, computed=True) as testbed:
        seen = asdict(failover.failover(testbed, client))
        return seen | {"written": [str(file) for file in testbed.directory.rglob("mapping.json")]}


@needs_root
@pytest.mark.slow
def test_computed_mapping_finds_best_site_and_fails_over(tmp_path: Path) -> None:
    made_of = programs()
    seen = Sandboxed(lambda box: led(box, made_of), tmp_path).result()
    assert seen["written"] == []
    # First the site where the client entered, then the nearest one, then the next.
    assert seen["first"] == seen["entered"] == "us-east-2"
    assert (seen["best"], seen["heir"]) == ("eu-central-1", "eu-south-1")
    # Handshakes with the best site are measured without the detour. No measurement is below its distance.
    distances = list(seen["distances"].values())
    rtts = {(rtt["site"], rtt["source"]): rtt["milliseconds"] for rtt in seen["rtts"]}
    assert rtts[1, "passive"] < rtts[3, "passive"]
    assert {key: rtt for key, rtt in rtts.items() if rtt < distances[key[0] - 1]} == {}, distances


def test_unmet_mapping_goals_are_reported() -> None:
    rtts, distances = (Rtt(1, "passive", 23.1, 4), Rtt(1, "active", 22.9, 1)), {"a": 22.6, "b": 120.4}
    good = failover.Failover(2.0, "b", "b", "a", 5.0, rtts, distances, "a", "b", 1.9)
    assert failover.unmet(good) == []
    assert tables.measured(good)[1] == [["a", "22.6 ms", "23.1 ms (4)", "22.9 ms (1)"], ["b", "120.4 ms", "-", "-"]]
    assert len(failover.unmet(replace(good, first="a", outage=4.0))) == 2


def test_distances_explain_published_gains() -> None:
    """Table 5 and the figures of section 5.3: the distances explain the gains of Artemis."""
    latencies = Latencies.published()
    for name, against, what, gain in (("global-large", "dns", 0, 39.4), ("global-small", "anycast", 1, 25.2)):
        scenario = SCENARIOS[name]
        alone = least(latencies, scenario, anycast(latencies, scenario, seed=1))
        assert tables.below(alone["artemis"][what], alone[against][what]) == pytest.approx(gain, abs=7)


def test_results_survive_saving_and_are_compared(tmp_path: Path) -> None:
    samples = (
        Sample("Japan", "artemis", 1, None, 0.0, 20.0, 20.0, "a"),
        Sample("Japan", "dns", 1, True, 1.0, 20.0, 20.0, "a"),
        Sample("Japan", "dns", 1, False, 39.0, 20.0, 20.0, "a"),
    )
    result = Result("global-large", 1, 1, {"sites": 1.0}, 0.2, 1.7, LEAST, samples)
    save([result], tmp_path / "result.json")
    assert read(tmp_path / "result.json") == [result]
    # Set-up takes 20 ms against 40 ms, a query 40 ms against 60 ms.
    assert tables.unmet([result]) == []
    head, rows = tables.reductions([result])
    assert rows[0][3] == "50.0 %" and rows[0][6] == "33.3 %" and len(rows[0]) == len(head)
    slow = Result("global-large", 1, 1, {}, 0.2, 1.7, LEAST, (*samples, Sample("Japan", "artemis", 1, None, 0.0, 60.0, 9.0, "a")))
    assert tables.unmet([slow])[0] == "setup latency is 0.0 % below DNS, not 39.4 %"
    expired = Sample("Japan", "dns", 1, True, 170.0, 20.0, 20.0, "a")
    assert tables.unmet([Result("global-large", 1, 1, {}, 0.2, 1.7, LEAST, (*samples, expired))]) == [
        "1 names that were planned as cached took as long as a query to the name server"
    ]


def test_page_contains_all_results(tmp_path: Path) -> None:
    methods, clients = ("artemis", "dns", "anycast", "regional"), SCENARIOS["global-large"].clients
    samples = [Sample(client, method, 1, True, 1.0, 20.0, 20.0, "us-west-1") for client in clients for method in methods]
    result = Result("global-large", 1, 1, {"sites": 1.0}, 0.2, 1.7, LEAST, tuple(samples))
    tries = [events.Try(events.LOST, 2, "eu-central-1", 100.0)]
    rtts = (Rtt(1, "passive", 23.1, 4),)
    seen = failover.Failover(2.0, "b", "b", "a", 5.0, rtts, {"a": 22.6, "b": 120.4}, "a", "b", 1.9)
    save_failover(seen, tmp_path / "failover.json")
    assert read_failover(tmp_path / "failover.json") == seen
    moved = {"ngtcp2": {"version": "1", "site": "a", "before": 6, "after": 0}}
    page = report.write([result], tries, seen, moved, tmp_path).read_text()
    for row in (
        "| Global Large | Artemis | 23.2 | 21.0 | 21.4 |",
        "| it fails; the next best site answers | b | 1.9 s later |",
        "| ngtcp2 | 1 | a | 6 | 0 |",
    ):
        assert row in page
    bare = report.write([result], [], None, {}, tmp_path).read_text()
    for title in (report.EVENTS, report.FAILOVER, report.CLIENTS):
        assert f"## {title}" in page
        assert title not in bare
