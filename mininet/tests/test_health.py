# SPDX-License-Identifier: Apache-2.0
"""Health checks in a whole data centre: faults of servers, and of the checker itself.

``ROUNDS=5`` repeats the faults and prints the times to detect them; docs/health.md has them.
"""

import json
import os
import re
import signal
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from cuts import dropping
from frontage_testbed.datacentre import checker
from frontage_testbed.datacentre.addresses import HTTP_PORT, VIP4, VIP6
from frontage_testbed.datacentre.edge import METRICS
from frontage_testbed.datacentre.faults import FAULTS, cut_off, fault, unavailable
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.metricsclient import scrape
from frontage_testbed.sandbox import Sandbox
from healthbeds import Bed, wait
from testbeds import Sandboxed, deployment, needs_root

pytest.importorskip("h11")
pytestmark = [needs_root, pytest.mark.slow(seconds=25)]

SETTINGS = Settings(servers=4, clients=1, policies=("cheetah-rr",), queue_delay=0.1)
CHECK = {"kind": "http", "path": "/health", "interval": 1.0, "timeout": 1.0, "rise": 2, "fall": 3}
OBJECT = 1000
QUIC_CHECK = {**CHECK, "kind": "http3", "path": f"/{OBJECT}", "host": "films", "verify": False}
ROUNDS = int(os.environ.get("ROUNDS", "1"))
PAUSE = 6.0
"""Seconds that a slow server needs for a response: six times the timeout."""
OUTAGE = 3 * 3 + 3
"""Seconds of the checker's own outage: longer than three failed checks take."""

KNOCK = """
import socket, sys
while True:
    for vip in sys.argv[1:]:
        try:
            socket.create_connection((vip, {port}), timeout=0.05).close()
        except OSError:
            pass
"""


@contextmanager
def bed(box: Sandbox) -> Iterator[Bed]:
    """Yield a running testbed in which all servers are healthy."""
    parts = deployment(SETTINGS)
    testbed = parts.testbed(SETTINGS, box)
    checker.attach(testbed.edge, CHECK)
    with testbed:
        testbed.wait_until_ready()
        found = Bed(testbed, box.scratch)
        names = {server.name for server in testbed.server_addresses}
        wait(lambda: found.healths() == {name: {"healthy"} for name in names}, f"not healthy: {found.healths()}")
        yield found


def test_failed_server_gets_no_new_connections_and_recovers(tmp_path: Path) -> None:
    deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        result: dict[str, list[dict[str, object]]] = {name: [] for name in FAULTS}
        with bed(box) as found:
            every = {server.name for server in found.testbed.server_addresses}
            assert found.assigned() == every
            for turn in range(ROUNDS):
                for number, name in enumerate(FAULTS):
                    # Each fault of a round has a server of its own, so that no server flaps.
                    server = found.server((turn + number) % len(every))
                    victim = server.addresses.name
                    began = time.time()
                    with fault(name, server, SETTINGS, box.scratch, PAUSE):
                        detected, written = found.wait_for_effect(victim, "failed", began)
                        assigned = sorted(found.assigned())
                    mended = time.time()
                    recovered, _ = found.wait_for_effect(victim, "healthy", mended)
                    back = sorted(found.assigned())
                    times = {"detected": detected, "written": written - detected, "recovered": recovered}
                    result[name].append({"victim": victim, "assigned": assigned, "back": back, **times})
            return {"faults": result, "every": sorted(every), "log": found.log()}

    result = Sandboxed(body, tmp_path).result()
    every = set(result["every"])
    for name, rounds in result["faults"].items():
        for one in rounds:
            assert set(one["assigned"]) == every - {one["victim"]}, name
            assert set(one["back"]) == every, name
        for what in ("detected", "written", "recovered"):
            times = [one[what] for one in rounds]
            print(f"{name:12} {what:9} median {statistics.median(times):6.3f} s, worst {max(times):6.3f} s of {len(times)}")


def test_connection_of_a_failed_server_continues(tmp_path: Path) -> None:
    deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        with bed(box) as found:
            held = found.hold(8, VIP4)
            with unavailable(found.server(0), box.scratch):
                found.wait_for("s1", "failed")
                return held.servers()

    servers = Sandboxed(body, tmp_path).result()
    assert ["s1", "s1"] in servers
    assert all(first == second for first, second in servers), servers


def test_outage_of_the_checker_removes_no_server(tmp_path: Path) -> None:
    deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        with bed(box) as found:
            start = len(found.log())
            before = scrape(METRICS).by("result", "frontage_health_checks_total")
            checker.cut(up=False)
            wait(lambda: scrape(METRICS).total("frontage_health_frozen") == 2, "the health is not frozen")
            time.sleep(OUTAGE)
            during = found.healths()
            status = found.testbed.edge.frontage("status")
            checker.cut(up=True)
            wait(lambda: scrape(METRICS).total("frontage_health_frozen") == 0, "the health stays frozen")
            # Checks pass again.
            passed = found.passed()
            wait(lambda: found.passed() > passed + 16, "no checks pass")
            after = scrape(METRICS).by("result", "frontage_health_checks_total")
            return {
                "during": [sorted(states) for states in during.values()],
                "status": status,
                "failed": [counts.get("failed", 0) for counts in (before, after)],
                "unknown": [counts.get("unknown", 0) for counts in (before, after)],
                "log": found.log()[start:],
                "assigned": sorted(found.assigned()),
            }

    result = Sandboxed(body, tmp_path).result()
    assert result["during"] == [["healthy"]] * SETTINGS.servers
    assert result["failed"][0] == result["failed"][1], "no failure counts"
    assert result["unknown"][1] > result["unknown"][0]
    assert "are frozen: " in result["status"]
    assert "has failed" not in result["log"]
    assert f"health checks from {checker.ADDRESS4} are frozen" in result["log"]
    assert f"health checks from {checker.ADDRESS4} continue" in result["log"]
    assert len(result["assigned"]) == SETTINGS.servers


def test_restart_of_the_switch_keeps_failed_servers_out(tmp_path: Path) -> None:
    deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        with bed(box) as found, unavailable(found.server(0), box.scratch):
            edge = found.testbed.edge
            found.wait_for("s1", "failed")
            connections = int(scrape(METRICS).total("frontage_switch_connections_total"))
            start = len(found.log())
            edge.stop_switch()
            wait(lambda: scrape(METRICS).total("frontage_health_frozen") == 2, "the health is not frozen")
            edge.start_switch()
            edge.wait_until_installed(connections + 1)
            return {"assigned": sorted(found.assigned()), "log": found.log()[start:]}

    result = Sandboxed(body, tmp_path).result()
    assert result["assigned"] == ["s2", "s3", "s4"]
    assert "has recovered" not in result["log"]


def test_restart_of_the_controller_keeps_failed_servers_out(tmp_path: Path) -> None:
    deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        with bed(box) as found:
            edge = found.testbed.edge
            began = time.time()
            with unavailable(found.server(0), box.scratch):
                found.wait_for_effect("s1", "failed", began)
                edge.stop_controller()
                before = len(found.log())
                edge.start_controller()
                edge.wait_until_installed()
                assigned = sorted(found.assigned())
                log = found.log()[before:]
            found.wait_for("s1", "healthy")
            return {"assigned": assigned, "log": log, "back": sorted(found.assigned())}

    result = Sandboxed(body, tmp_path).result()
    assert result["assigned"] == ["s2", "s3", "s4"]
    # It only seeds the leaves of the trees, which it cannot read.
    written = re.findall(r"entries: (.*?), \d+ leaf operations", result["log"].partition("has recovered")[0])
    assert set(written) <= {"0 inserted, 0 modified, 0 deleted"}
    assert result["back"] == ["s1", "s2", "s3", "s4"]


def use(found: Bed, check: Mapping[str, object]) -> None:
    """Use a health check, and wait until servers have passed it."""
    checker.change(found.testbed.edge, check)
    wait(lambda: "frontage.yaml has changed" in found.log(), "the controller does not follow the file")
    passed = found.passed()
    wait(lambda: found.passed() >= passed + 2 * SETTINGS.servers, "no checks pass")


def test_silent_server_fails_between_active_checks(tmp_path: Path) -> None:
    deployment(SETTINGS)
    # The next active checks come too late to be the reason.
    check = {**CHECK, "interval": 600.0, "passive": True, "passive_packets": 5, "passive_window": 1.0}

    def body(box: Sandbox) -> object:
        with bed(box) as found:
            use(found, check)
            knocking = [
                found.client.spawn([sys.executable, "-c", KNOCK.format(port=HTTP_PORT), vip])
                for vip in (VIP4, VIP6)
                for _ in range(8)
            ]
            with cut_off(found.server(0), SETTINGS):
                found.wait_for("s1", "failed")
                healths = {name: sorted(states) for name, states in found.healths().items()}
            for process in knocking:
                process.kill()
            return {"healths": healths, "log": found.log()}

    result = Sandboxed(body, tmp_path).result()
    assert result["healths"] == {"s1": ["failed"], "s2": ["healthy"], "s3": ["healthy"], "s4": ["healthy"]}
    assert re.search(r"server s1-web of VIP web has failed: \d+ packets to it in \d\.\d s, but none from it", result["log"])
    assert re.search(r"server s1-web6 of VIP web6 has failed: \d+ packets to it in \d\.\d s, but none from it", result["log"])


def test_server_without_answers_to_handshakes_fails_while_its_connections_go_on(tmp_path: Path) -> None:
    deployment(SETTINGS)
    passive = {"passive": True, "passive_packets": 1_000_000, "passive_handshakes": 5, "passive_window": 1.0}
    check = {**CHECK, "interval": 600.0, **passive}

    def body(box: Sandbox) -> object:
        with bed(box) as found:
            use(found, check)
            held = found.hold(8, VIP4)
            command = [sys.executable, "-c", KNOCK.format(port=HTTP_PORT), VIP4, VIP6]
            knocking = [found.client.spawn(command) for _ in range(8)]
            with dropping(found.testbed.servers[0], "tcp flags & (syn | ack) == (syn | ack)"):
                found.wait_for("s1", "failed")
                healths = {name: sorted(states) for name, states in found.healths().items()}
                servers = held.servers()
            for process in knocking:
                process.kill()
            return {"healths": healths, "held": servers, "log": found.log()}

    result = Sandboxed(body, tmp_path).result()
    assert result["healths"] == {"s1": ["failed"], "s2": ["healthy"], "s3": ["healthy"], "s4": ["healthy"]}
    assert ["s1", "s1"] in result["held"], "its connection goes on"
    assert re.search(
        r"server s1-web of VIP web has failed: \d+ handshakes with it in \d\.\d s, but none was answered", result["log"]
    )


def test_recovered_server_starts_slowly(tmp_path: Path) -> None:
    deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        with bed(box) as found:
            edge = found.testbed.edge

            def set_slow_start(seconds: float) -> None:
                changes = found.log().count("frontage.yaml has changed")
                document = yaml.safe_load(edge.config.read_text())
                for vip in document["vips"]:
                    vip["slow_start"] = seconds
                edge.write_configuration(yaml.safe_dump(document, sort_keys=False))
                wait(lambda: found.log().count("frontage.yaml has changed") > changes, "the controller does not follow the file")
                edge.wait_until_installed()

            set_slow_start(3600)
            began = time.time()
            with unavailable(found.server(0), box.scratch):
                found.wait_for_effect("s1", "failed", began)
            found.wait_for_effect("s1", "healthy", time.time())
            shares = scrape(METRICS).by("server", "frontage_slow_start_share")
            first = found.connections(52, VIP4)
            status = json.loads(edge.frontage("status", "--json"))
            set_slow_start(0)
            wait(lambda: found.connections(16, VIP4)["s1"] == 4, "the server does not get its full share")
            return {"shares": sorted(shares), "first": first, "status": [server["share"] for server in status["servers"]]}

    result = Sandboxed(body, tmp_path).result()
    assert result["shares"] == ["s1-web", "s1-web6"]
    # The pool of weighted round robin has the server once among 13 entries.
    assert result["first"] == {"s1": 4, "s2": 16, "s3": 16, "s4": 16}
    assert sorted(result["status"]) == [25, 25, *[100] * 6]


def test_failed_quic_server_is_detected_and_recovers(tmp_path: Path) -> None:
    pytest.importorskip("aioquic")
    deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        testbed = deployment(SETTINGS).quic_testbed(SETTINGS, box)
        checker.attach(testbed.edge, QUIC_CHECK)
        with testbed:
            testbed.offer_objects([OBJECT])
            testbed.wait_until_ready()
            found = Bed(testbed, box.scratch)
            for server in testbed.server_addresses:
                found.wait_for(server.name, "healthy")
            pid = testbed.server_pids[0]
            os.kill(pid, signal.SIGSTOP)
            began = time.time()
            found.wait_for_effect("s1", "failed", began)
            during = {name: sorted(states) for name, states in found.healths().items()}
            outcomes = testbed.edge.counters().steering
            os.kill(pid, signal.SIGCONT)
            found.wait_for_effect("s1", "healthy", began)
            return {"during": during, "outcomes": outcomes, "answers": testbed.answers()}

    result = Sandboxed(body, tmp_path).result()
    assert result["during"] == {"s1": ["failed"], "s2": ["healthy"], "s3": ["healthy"], "s4": ["healthy"]}
    assert result["outcomes"].get("check", 0) > 0
    # Only checks have sent packets.
    assert not [
        name for name, count in result["outcomes"].items() if count and name.startswith(("assigned", "retrieved", "hashed"))
    ]
    assert all(result["answers"].values())
