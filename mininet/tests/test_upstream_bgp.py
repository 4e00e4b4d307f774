# SPDX-License-Identifier: Apache-2.0
"""Routes that the switch learns by BGP from two upstream routers: spreading, failure and restarts during downloads, and many routes."""

import dataclasses
import itertools
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from frontage_testbed.datacentre.addresses import VIP4, ClientAddresses
from frontage_testbed.datacentre.clients import Clients, over_tcp
from frontage_testbed.datacentre.servers import PACE, PACED
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.load import workload
from frontage_testbed.load.workload import Arrival
from frontage_testbed.sandbox import Sandbox
from frontage_testbed.upstream.addresses import TRANSIT, Upstream
from frontage_testbed.upstream.probes import Probes, outage
from frontage_testbed.upstream.routing import router_configuration
from frontage_testbed.upstream.testbed import ROUTERS, UpstreamTestbed, upstream_testbed
from testbeds import Sandboxed, Schedule, deployment, needs_frr, needs_root, only_long, seconds_until

pytestmark = [
    needs_root,
    pytest.mark.slow(seconds=90),
    needs_frr,
]

SETTINGS = Settings(servers=2, policies=("cclb4",), queue_delay=0.1)
DOWNLOADS = 60
LENGTH = 50.0
"""Seconds of each download."""
HANG, BACK, ROUTER_RESTART, FRR_RESTART = 6.0, 12.0, 20.0, 30.0
"""Times of the events in seconds."""
SHORT = 1.0
"""Seconds without packets of a stream that a busy machine may cause."""
DETECTED = 5.0
"""Seconds without packets of a stream that BFD allows, but the hold time of BGP would not."""
CLIENT = ClientAddresses(0).address4
MANY = 10_000
BEYOND = 50
"""Further routes than `max_routes`."""


def make_plan() -> list[Arrival]:
    return [
        Arrival(i, i / DOWNLOADS, i % SETTINGS.clients, int(LENGTH * PACE), int(LENGTH * PACE), "idle") for i in range(DOWNLOADS)
    ]


def next_hops(testbed: UpstreamTestbed, address: str = CLIENT) -> set[str]:
    """Return the routers that the switch uses for an address."""
    found = testbed.route(address)
    return set(found["route"]["next_hops"]) - set(found["down"]) if found["route"] else set()


def all_hops(*routers: Upstream) -> set[str]:
    return {router.uplink.router4 for router in routers}


def is_settled(testbed: UpstreamTestbed) -> bool:
    """Return whether both routers have announced the routes to the clients since their last restart."""
    paths = testbed.route(CLIENT)["paths"]
    return {path["router"] for path in paths if not path["is_stale"]} == all_hops(*ROUTERS)


def sent_by(testbed: UpstreamTestbed, router: Upstream) -> int:
    """Return the packets that the switch has sent to a router."""
    name = testbed.edge.edges[0].interface(router.port)
    shown = subprocess.run(["ip", "-j", "-s", "link", "show", name], capture_output=True, check=True).stdout
    return int(json.loads(shown)[0]["stats64"]["tx"]["packets"])


def hang(testbed: UpstreamTestbed, router: Upstream) -> float:
    """Let a router hang: it keeps its links and connections, but neither forwards nor answers. Return when."""
    frozen = time.monotonic()
    testbed.network[router.name].run(["sh", "-c", "echo 0 > /proc/sys/net/ipv4/ip_forward"])
    testbed.routers[router.index].freeze()
    return frozen


def test_flows_survive_routers_and_restarts(tmp_path: Path) -> None:
    parts = deployment(SETTINGS)
    one, two = ROUTERS

    def body(box: Sandbox) -> object:
        plan, found = make_plan(), dict[str, Any]()
        plan_file = box.scratch / "plan.csv"
        workload.write_plan(plan, plan_file)
        with upstream_testbed(parts, SETTINGS, box) as testbed:
            testbed.offer_objects(a.wire_size for a in plan)
            testbed.edge.wait_until_installed()
            found["learned after"] = seconds_until(lambda: next_hops(testbed) == all_hops(one, two))
            testbed.wait_until_ready()
            probes = Probes(testbed.servers[0], testbed.clients[0], CLIENT, box.scratch / "probes.log")
            before = {router.name: sent_by(testbed, router) for router in ROUTERS}
            times: dict[str, float] = {}

            def hang_one() -> None:
                found["shares"] = {router.name: sent_by(testbed, router) - before[router.name] for router in ROUTERS}
                times["hang"] = hang(testbed, one)
                found["hang seen after"] = seconds_until(lambda: next_hops(testbed) == all_hops(two))

            def bring_back() -> None:
                testbed.network[one.name].run(["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])
                times["back"] = time.monotonic()
                testbed.routers[0].thaw()
                found["back after"] = seconds_until(lambda: next_hops(testbed) == all_hops(one, two))

            def restart_router() -> None:
                seconds_until(lambda: is_settled(testbed))
                times["router restarts"] = time.monotonic()
                testbed.routers[1].kill_daemon("bgpd")
                time.sleep(1.0)
                found["while it restarts"] = testbed.route(CLIENT)
                testbed.routers[1].start_daemon("bgpd")
                testbed.routers[1].configure(router_configuration(two))
                seconds_until(lambda: is_settled(testbed))

            def restart_frr() -> None:
                seconds_until(lambda: is_settled(testbed))
                times["FRR restarts"] = time.monotonic()
                testbed.speaker.kill_daemon("bgpd")
                time.sleep(1.0)
                found["while FRR restarts"] = testbed.route(CLIENT)
                testbed.speaker.start_daemon("bgpd")
                seconds_until(lambda: is_settled(testbed))
                times["end"] = time.monotonic()

            schedule = Schedule(
                [(HANG, hang_one), (BACK, bring_back), (ROUTER_RESTART, restart_router), (FRR_RESTART, restart_frr)]
            )
            clients = Clients(testbed.clients, over_tcp(plan_file, VIP4, PACED), box.scratch / "clients.log")
            schedule.run(clients)
            arrivals = probes.stop()
            marks = list(times.items())
            for (name, begin), (_, end) in itertools.pairwise(marks):
                found[f"lost: {name}"] = dataclasses.asdict(outage(arrivals, begin, end))
            found["status"] = testbed.learned()
            found["text"] = testbed.edge.frontage("status")
        return found | {"outcomes": [(o.index, o.outcome) for o in clients.outcomes]}

    found = Sandboxed(body, tmp_path).result()
    outcomes = found.pop("outcomes")
    print(found.pop("text"))
    print(json.dumps(found, indent=1))
    assert len(outcomes) == DOWNLOADS
    assert [o for o in outcomes if o[1] != "ok"] == []
    shares = found["shares"]
    assert min(shares.values()) > 0.2 * sum(shares.values()), "flows spread over both routers"
    assert 0 < found["lost: hang"]["streams"] < 32, "only the flows through the router that hangs"
    assert found["lost: hang"]["seconds"] < DETECTED
    assert found["while it restarts"]["route"]["next_hops"] == sorted(all_hops(one, two))
    stale = {path["router"] for path in found["while it restarts"]["paths"] if path["is_stale"]}
    assert stale == all_hops(two)
    assert [path["is_stale"] for path in found["while FRR restarts"]["paths"]] == [True, True]
    for event in ("back", "router restarts", "FRR restarts"):
        assert found[f"lost: {event}"]["seconds"] < SHORT, event
    assert not any(found["status"]["rejected"].values())
    assert found["status"]["learned"] == {"ipv4": SETTINGS.clients, "ipv6": SETTINGS.clients}


def announce(testbed: UpstreamTestbed, first: int, count: int, verb: str = "add") -> None:
    """Let the transit have, or no longer have, /24s of 100.64.0.0/10, which it announces."""
    batch = "".join(f"route {verb} 100.{64 + i // 256}.{i % 256}.0/24 dev many\n" for i in range(first, first + count))
    testbed.network[TRANSIT].run(["ip", "-batch", "-"], input=batch)


@only_long
def test_many_routes(tmp_path: Path) -> None:
    """The routes of both routers are installed, up to the limit; their flows leave a router that hangs as fast as with few routes."""
    parts = deployment(SETTINGS)
    one, two = ROUTERS

    def body(box: Sandbox) -> object:
        found = dict[str, Any]()
        with upstream_testbed(parts, SETTINGS, box) as testbed:
            testbed.edge.wait_until_installed()
            seconds_until(lambda: next_hops(testbed) == all_hops(one, two))
            testbed.wait_until_ready()
            testbed.network[TRANSIT].run(["sh", "-c", "ip link add many up type veth peer name end && ip link set end up"])
            few = SETTINGS.clients
            announce(testbed, 0, MANY - few)
            began = time.monotonic()
            instance = "router bgp 65000\naddress-family ipv4 unicast\nredistribute kernel\nexit-address-family\nexit\n"
            testbed.transit.configure(instance)

            def has_all() -> bool:
                peers = testbed.speaker.show("show bgp ipv4 unicast summary")["peers"].values()
                return [peer["pfxRcd"] for peer in peers] == [MANY, MANY]

            def installed() -> bool:
                described = testbed.learned()
                return described["installed"] == MANY + few and described["learned"]["ipv4"] == MANY

            seconds_until(has_all)
            found["FRR has all after"] = time.monotonic() - began
            seconds_until(installed)
            found["all installed after"] = time.monotonic() - began
            testbed.edge.wait_until_installed()
            found["difference"] = json.loads(testbed.edge.frontage("status", "--json"))["difference"]
            found["groups"] = testbed.learned()["groups"]

            # Further routes are rejected, until there is room.
            announce(testbed, MANY, BEYOND)
            seconds_until(lambda: testbed.learned()["rejected"]["limit"] >= 2 * BEYOND)
            found["beyond the limit"] = testbed.learned()["learned"]["ipv4"]
            announce(testbed, 0, MANY // 5, "del")
            beyond = f"100.{64 + MANY // 256}.{MANY % 256}.1"
            found["room used after"] = seconds_until(lambda: next_hops(testbed, beyond) == all_hops(one, two))

            probes = Probes(testbed.servers[0], testbed.clients[0], CLIENT, box.scratch / "probes.log")
            time.sleep(2.0)
            hung = hang(testbed, one)
            seconds_until(lambda: next_hops(testbed) == all_hops(two) == next_hops(testbed, beyond))
            found["routes moved after"] = time.monotonic() - hung
            end = time.monotonic()
            found["lost"] = dataclasses.asdict(outage(probes.stop(), hung, end))
        return found

    found = Sandboxed(body, tmp_path).result()
    print(json.dumps(found, indent=1))
    assert found["groups"] == 2, "one for each address family"
    assert not found["difference"]["tables"]
    assert found["beyond the limit"] == MANY
    assert 0 < found["lost"]["streams"] < 32
    assert found["lost"]["seconds"] < DETECTED
