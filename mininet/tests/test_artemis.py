"""Artemis' world: distances, routes and names as planned, and clients that meet the sites they should."""

import shutil
import time
from ipaddress import IPv6Address, IPv6Network
from pathlib import Path
from typing import Any

import pytest

from frontage_demo.artemis import events, tables
from frontage_demo.artemis.addresses import PORT
from frontage_demo.artemis.latency import Latencies
from frontage_demo.artemis.measure import Sample, by_anycast, by_artemis, by_dns, sample
from frontage_demo.artemis.names import ZONE
from frontage_demo.artemis.programs import find
from frontage_demo.artemis.results import Result, read, save
from frontage_demo.artemis.scenarios import AUTHORITY, SCENARIOS, Published, Scenario, anycast, cache_plan, extra
from frontage_demo.artemis.site import Programs
from frontage_demo.artemis.world import LONG_OBJECT, LONG_OBJECT_BYTES, ArtemisWorld
from frontage_demo.capture import Capture
from frontage_demo.deployment import DeploymentError
from frontage_demo.sandbox import Sandbox
from worlds import Sandboxed, needs_root

SMALL = Scenario(
    "small",
    "Small",
    ("ap-northeast-1", "eu-central-1"),
    # One client of two is led elsewhere.
    Published((0, 0, 0), (0, 0, 0), 0.5, 0.0),
    {"Japan": "ap-northeast-1", "Germany": "eu-central-1"},
)


def programs() -> Programs:
    try:
        return find()
    except DeploymentError as error:
        pytest.skip(str(error))


def test_the_matrix_is_whole_and_says_where_it_comes_from() -> None:
    latencies = Latencies.published()
    assert len(latencies.places) == 21
    # The speed of light in glass allows no less between Frankfurt and Sydney, 16,500 km apart, than 160 ms.
    assert latencies.rtt("eu-central-1", "ap-southeast-2") > 160
    assert latencies.by_distance("eu-west-2", latencies.places)[:2] == ["eu-west-2", "eu-west-3"]


@pytest.mark.parametrize("lines", [["region,a,b", "a,1,2"], ["region,a", "a,0"], ["region,a,b", "a,1,2", "b,1"]])
def test_a_matrix_that_is_none_is_refused(lines: list[str]) -> None:
    with pytest.raises(ValueError, match=r"places|positive"):
        Latencies.parse(lines)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_anycast_is_as_bad_as_published(scenario: Scenario) -> None:
    latencies = Latencies.published()
    routes = anycast(latencies, scenario, seed=1)
    assert routes == anycast(latencies, scenario, seed=1)
    best = {place: latencies.by_distance(place, scenario.sites)[0] for place in routes}
    wrong = sum(routes[place] != best[place] for place in routes)
    assert wrong == round(scenario.published.suboptimal * len(routes))
    assert extra(latencies, best, routes) == pytest.approx(scenario.published.extra, abs=1.5)


def test_the_plan_of_names_has_the_share_of_hits() -> None:
    plan = cache_plan(["a", "b", "c"], rounds=200, hit_rate=0.835, seed=7)
    assert sum(map(sum, plan.values())) == 501
    assert {len(hits) for hits in plan.values()} == {200}
    assert plan == cache_plan(["a", "b", "c"], rounds=200, hit_rate=0.835, seed=7)


def test_what_redundancy_did_not_bring_is_said() -> None:
    fast = [events.Try(events.LOST, 2, "a", 100.0), events.Try(events.DEAD, 2, "b", 400.0)]
    assert events.unmet([*fast, events.Try(events.LOST, 1, "a", 1100.0), events.Try(events.LOST, 1, None, 0.0)]) == []
    late = [*fast, events.Try(events.LOST, 2, "a", 1100.0), events.Try(events.DEAD, 2, None, 0.0)]
    missed = events.unmet([*late, events.Try(events.MAPPED, 1, None, 0.0)])
    assert [line.split(" ", 1)[0] for line in missed] == ["1", "1", "1"]
    _, rows = tables.events(late)
    assert [row[:5] for row in rows] == [[events.LOST, "2", "2", "0", "1"], [events.DEAD, "2", "2", "1", "0"]]


def played(box: Sandbox, made_of: Programs, *, dispatched: bool) -> dict[str, Any]:
    """What two clients of a small world met."""
    seen: dict[str, Any] = {}
    with ArtemisWorld(SMALL, made_of, box.scratch / "world", seed=1, dispatched=dispatched) as world:
        seen["routes"] = {client: world.routes[place] for client, place in SMALL.clients.items()}
        for client, at in SMALL.clients.items():
            anycast = sample(world, client, "anycast", by_anycast(world, client))
            miss = sample(world, client, "dns", by_dns(world, client, "www"))
            seen[client] = {
                "anycast": anycast.handshake,
                "rtt": world.latencies.rtt(at, world.routes[at]),
                "miss": miss.resolution,
                "authority": world.latencies.rtt(at, AUTHORITY),
                "dns": miss.site,
            }
            by_name = by_artemis(world, client)
            seen[client]["artemis"] = sample(world, client, "artemis", by_name).site
            seen[client]["migrated"] = by_name["seconds"]["migrated"] is not None
            # It leaves behind the dispatcher, and the detour where anycast leads to the other site.
            if shutil.which("gtlsclient"):
                folder = box.scratch / client
                folder.mkdir()
                seen[client]["ngtcp2"] = by_hosts_file(world, client, folder)
        seen["service address"] = world.service_address
        seen["cookie prefixes"] = {site.place: site.cookie_prefix for site in world.sites}
    return seen


def by_hosts_file(world: ArtemisWorld, client: str, folder: Path) -> list[tuple[bool, str]]:
    """ngtcp2's client fetches an object by a name that a hosts file says to be at the service address. What it sent
    (true) and was sent, with the other address.
    """
    hosts, host = folder / "hosts", world.client(client)
    hosts.write_text(f"{world.service_address} {ZONE}\n")
    capture = Capture(host, folder)
    command = f"mount --bind {hosts} /etc/hosts && exec gtlsclient --quiet --exit-on-all-streams-close"
    command += f" --download={folder} {ZONE} {PORT} https://{ZONE}{LONG_OBJECT}"
    host.run(["unshare", "-m", "sh", "-c", command], timeout=30)
    assert (folder / LONG_OBJECT.removeprefix("/")).stat().st_size == LONG_OBJECT_BYTES
    # tcpdump may be behind: it is to have all of the object's bytes.
    deadline = time.monotonic() + 30
    while sum(d.size for d in capture.datagrams() if not d.up) < LONG_OBJECT_BYTES and time.monotonic() < deadline:
        time.sleep(0.1)
    capture.end()
    return [(datagram.up, datagram.remote) for datagram in capture.datagrams()]


@needs_root
@pytest.mark.slow
@pytest.mark.parametrize("dispatched", [False, True], ids=["decided", "dispatched"])
def test_clients_meet_the_sites_that_routes_and_names_lead_to(dispatched: bool, tmp_path: Path) -> None:
    made_of = programs()
    seen = Sandboxed(lambda box: played(box, made_of, dispatched=dispatched), tmp_path).result()
    assert sorted(seen["routes"].values()) in (["ap-northeast-1"] * 2, ["eu-central-1"] * 2)
    for client, place in SMALL.clients.items():
        met = seen[client]
        assert met["dns"] == place
        # Nothing is faster than the distances allow.
        assert met["anycast"] >= met["rtt"]
        assert met["miss"] >= met["authority"]
        # Also where anycast leads to the other site.
        assert met["artemis"] == place
        assert met["migrated"]
        if "ngtcp2" in met:
            packets = [(up, remote) for up, remote in met["ngtcp2"]]
            binds_late(packets, seen["service address"], seen["cookie prefixes"][place])


def binds_late(seen: list[tuple[bool, str]], service: str, cookie_prefix: str) -> None:
    """An unmodified client begins at the service address, and is gone from there once its replica's own answers."""
    assert seen[0] == (True, service)
    others = {remote for _, remote in seen} - {service}
    assert len(others) == 1 and IPv6Address(others.pop()) in IPv6Network(cookie_prefix)
    answered = next(number for number, (up, remote) in enumerate(seen) if not up and remote != service)
    assert (True, service) not in seen[answered:]


def test_results_are_kept_and_compared(tmp_path: Path) -> None:
    samples = (
        Sample("Japan", "artemis", 1, None, 0.0, 20.0, 20.0, "a"),
        Sample("Japan", "dns", 1, True, 1.0, 20.0, 20.0, "a"),
        Sample("Japan", "dns", 1, False, 39.0, 20.0, 20.0, "a"),
    )
    result = Result("global-large", 1, 1, {"sites": 1.0}, 0.2, 1.7, samples)
    save([result], tmp_path / "result.json")
    assert read(tmp_path / "result.json") == [result]
    # Set-up 20 against 40 ms, query 40 against 60.
    assert tables.unmet([result]) == []
    head, rows = tables.reductions([result])
    assert rows[0][3] == "50.0 %" and rows[0][5] == "33.3 %" and len(rows[0]) == len(head)
    slow = Result(
        "global-large", 1, 1, {}, 0.2, 1.7, (*samples, Sample("Japan", "artemis", 1, None, 0.0, 60.0, 9.0, "a"))
    )
    assert tables.unmet([slow])[0] == "setup latency is 0.0 % below DNS, not 39.4 %"
