# SPDX-License-Identifier: Apache-2.0
"""Health checks through three edge switches: loss of a switch, a path fault, and the failure of a server."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from frontage_testbed.datacentre.edge import METRICS
from frontage_testbed.datacentre.faults import killed
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.fleet import checkers
from frontage_testbed.fleet.addresses import EdgeAddresses
from frontage_testbed.fleet.testbed import FleetTestbed, fleet_testbed
from frontage_testbed.metricsclient import scrape
from frontage_testbed.sandbox import Sandbox
from healthbeds import Bed, seconds_until, wait
from testbeds import Sandboxed, deployment, needs_root

pytest.importorskip("h11")
pytestmark = [needs_root, pytest.mark.slow(seconds=60)]

SETTINGS = Settings(servers=6, clients=1, policies=("cheetah-rr",), queue_delay=0.1)
CHECK = {"kind": "http", "path": "/health", "interval": 1.0, "timeout": 1.0, "rise": 2, "fall": 3}
SWITCHES = 3


@contextmanager
def bed(box: Sandbox) -> Iterator[tuple[Bed, FleetTestbed]]:
    """Yield a running testbed in which all servers are healthy."""
    testbed = fleet_testbed(deployment(SETTINGS), SETTINGS, box, SWITCHES)
    checkers.attach(testbed.edge, CHECK)
    with testbed:
        testbed.wait_until_ready()
        found = Bed(testbed, box.scratch)
        names = {server.name for server in testbed.server_addresses}
        wait(lambda: found.healths() == {name: {"healthy"} for name in names}, f"not healthy: {found.healths()}")
        yield found, testbed


def path_faults() -> dict[str, int]:
    return {name: count for name, count in scrape(METRICS).by("device", "frontage_health_path_faults").items() if count}


def frozen() -> float:
    return scrape(METRICS).total("frontage_health_frozen")


def device_of(testbed: FleetTestbed, name: str) -> str:
    """Return the switch through which a server is checked."""
    status = json.loads(testbed.edge.frontage("status", "--json"))
    device: str = next(server["health"]["device"] for server in status["servers"] if server["name"] == name)
    return device


def assigned(found: Bed, testbed: FleetTestbed, edge: EdgeAddresses) -> list[str]:
    """Return the servers that one switch assigns to new connections."""
    testbed.route_through([edge])
    return sorted(found.assigned())


def times(log: str, began: float) -> tuple[list[float], list[float]]:
    """Return when s1 failed, once for each VIP, and when a switch got entries, in seconds."""
    failed = seconds_until(log, r"server s1-\S+ of VIP \S+ has failed: ", began)
    return failed, seconds_until(log, r"\d+ entries: ", began)


def is_written(log: str, began: float) -> bool:
    """Return whether all switches have entries from after both failures. One installation may contain both."""
    failed, written = times(log, began)
    return len(failed) == 2 and sum(at >= max(failed) for at in written) >= SWITCHES


def test_loss_of_a_switch_removes_no_server_and_a_failed_server_leaves_all_switches(tmp_path: Path) -> None:
    deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        with bed(box) as (found, testbed):
            edges = testbed.edge.edges
            one, two, three = edges
            result: dict[str, object] = {}
            start = len(found.log())

            # Server s1 does not reach the checker behind the switch that checks it.
            victim = found.server(0)
            near = next(edge for edge in edges if edge.name == device_of(testbed, "s1-web"))
            victim.host.run(["ip", "route", "replace", "blackhole", near.checker4])
            wait(lambda: path_faults() == {near.name: 1}, f"no path fault: {path_faults()}")
            result["with path fault"] = {name: sorted(states) for name, states in found.healths().items()}
            result["near"] = near.name
            victim.host.run(["ip", "route", "del", "blackhole", near.checker4])
            victim.host.run(["ip", "route", "add", near.checker4, "via", near.rack4])
            wait(lambda: not path_faults(), "the path fault stays")

            testbed.edge.kill_one(one)
            wait(lambda: frozen() == 2, "the checker behind the killed switch is not frozen")
            testbed.route_through([two, three])
            passed = found.passed()
            wait(lambda: found.passed() > passed + 5 * 2 * SETTINGS.servers, "no checks pass")
            result["during"] = {name: sorted(states) for name, states in found.healths().items()}
            result["log during"] = found.log()[start:]
            testbed.edge.start_one(one)
            testbed.edge.wait_until_installed()
            wait(lambda: frozen() == 0, "the checker stays frozen")
            testbed.route_through(edges)

            began = time.time()
            with killed(victim):
                found.wait_for("s1", "failed")
                wait(lambda: is_written(found.log(), began), "not written")
                detected, written = times(found.log(), began)
                result["assigned"] = {edge.name: assigned(found, testbed, edge) for edge in edges}
                result["times"] = [detected, written]
            found.wait_for("s1", "healthy")
            result["back"] = {edge.name: assigned(found, testbed, edge) for edge in edges}
            result["faults"] = path_faults()
            return result

    result = Sandboxed(body, tmp_path).result()
    every = [f"s{number + 1}" for number in range(SETTINGS.servers)]
    assert result["with path fault"] == {name: ["healthy"] for name in every}
    assert result["during"] == {name: ["healthy"] for name in every}
    assert "has failed" not in result["log during"]
    assert f"s1-web fails through switch {result['near']} only" in result["log during"]
    assert "servers are now checked through switch" in result["log during"]
    assert result["assigned"] == {f"edge{number + 1}": every[1:] for number in range(SWITCHES)}
    assert result["back"] == {f"edge{number + 1}": every for number in range(SWITCHES)}
    detected, written = result["times"]
    print(f"detected after {detected} s, written after {written} s")
