# SPDX-License-Identifier: Apache-2.0
"""Health checks through several switches: which one checks a server, confirmation, path faults, and the loss of a switch."""

from __future__ import annotations

import logging
from collections import Counter
from ipaddress import ip_address
from pathlib import Path

import pytest

from conftest import EXAMPLE
from frontage.checks.messages import Report, Result
from frontage.checks.paths import Paths, preferences
from frontage.checks.servers import ServerHealth, Verdict
from frontage.checks.service import HealthChecks
from frontage.config import Config, ConfigError, loads
from frontage.state.blocks import checker

FLEET = EXAMPLE.with_name("fleet.yaml")
SWITCHES = ("edge1", "edge2", "edge3")
PASSED, FAILED, UNKNOWN = Verdict.PASSED, Verdict.FAILED, Verdict.UNKNOWN


def fleet_text(switches: int = 3, servers: int = 6) -> str:
    """Return the example with a checker behind a port of each switch."""
    head, tail = FLEET.read_text(encoding="utf-8").split("# The same for both switches.")
    _, first, _ = head.split("  - name: edge")
    devices = ""
    for number in range(1, switches + 1):
        part = "  - name: edge" + first.replace("1\n", f"{number}\n", 1).replace("9559", f"{9558 + number}")
        part += (
            f"      - {{ id: 3, name: checker, role: client, mac: '02:00:00:00:09:0{number}', gateways: [10.255.{number}.1/24] }}\n"
            f"    neighbors: [{{ address: 10.255.{number}.2, port: checker }}]\n"
            f"    health: {{ port: checker, addresses: [10.255.{number}.2] }}\n"
        )
        devices += part
    head = head.split("  - name: edge")[0]
    tail = tail.replace("policy: cclb4 }", "policy: cclb4, health: { interval: 1, timeout: 1, rise: 2, fall: 2 } }")
    before, after = tail.split("servers:\n")
    rest = after[after.index("\n# Replace") :]
    listed = "".join(
        f"  - {{ name: web{sid}, vip: shop, address: 10.0.0.{10 + sid}, port: 8080, sid: {sid} }}\n" for sid in range(servers)
    )
    return f"{head}{devices}\n# The same for all switches.{before}servers:\n{listed}{rest}"


def fleet(switches: int = 3, servers: int = 6) -> Config:
    return loads(fleet_text(switches, servers), FLEET)


# One server


def paths(*usable: str, sid: int = 0) -> Paths:
    found = Paths(preferences(sid, SWITCHES))
    found.follow(found.order, set(usable or SWITCHES))
    return found


def take(one: Paths, switch: str, verdict: Verdict, *, decides: bool = True) -> Verdict | None:
    return one.take(switch, verdict, "timeout" if verdict is FAILED else None, rise=2, decides=decides)


def test_servers_spread_over_all_switches_and_over_the_others() -> None:
    orders = [preferences(sid, SWITCHES) for sid in range(12)]
    assert Counter(order[0] for order in orders) == dict.fromkeys(SWITCHES, 4)
    assert Counter(order[1] for order in orders if order[0] == "edge1") == {"edge2": 2, "edge3": 2}
    assert all(sorted(order) == sorted(SWITCHES) for order in orders)
    assert preferences(5, ["edge1"]) == ["edge1"]


def test_failure_counts_after_another_switch_confirms_it() -> None:
    one = paths()
    assert take(one, "edge1", FAILED, decides=False) is FAILED
    assert take(one, "edge1", FAILED) is None
    assert (one.is_confirming, one.via, one.checked) == (True, "edge2", {"edge2"})
    assert take(one, "edge2", UNKNOWN) is UNKNOWN
    assert one.is_confirming
    assert take(one, "edge2", FAILED) is FAILED
    assert not one.is_confirming
    assert one.faults == {}


def test_failure_through_one_switch_only_is_a_path_fault_until_the_path_is_mended() -> None:
    one = paths()
    assert take(one, "edge1", FAILED) is None
    assert take(one, "edge2", PASSED) is PASSED
    assert {name: fault.error for name, fault in one.faults.items()} == {"edge1": "timeout"}
    assert one.checked == {"edge1", "edge2"}
    for verdict in (PASSED, FAILED, PASSED, UNKNOWN):
        assert take(one, "edge1", verdict) is None, "tests of a path say nothing about the server"
    assert (one.via, set(one.faults)) == ("edge2", {"edge1"})
    assert take(one, "edge1", PASSED) is None
    assert (one.via, one.faults) == ("edge1", {}), "it is checked through its preferred switch again"


def test_only_switch_needs_no_confirmation() -> None:
    one = paths("edge2")
    assert one.via == "edge2"
    assert take(one, "edge2", FAILED) is FAILED


def test_loss_of_the_confirming_switch_ends_the_confirmation() -> None:
    one = paths()
    take(one, "edge1", FAILED)
    one.follow(one.order, {"edge1", "edge3"})
    assert (one.is_confirming, one.via) == (False, "edge1")
    take(one, "edge1", FAILED)
    assert (one.is_confirming, one.via) == (True, "edge3")


def test_confirmation_prefers_a_switch_through_which_the_server_passed() -> None:
    one = paths()
    one.is_failed = True
    assert one.checked == set(SWITCHES)
    assert take(one, "edge2", FAILED, decides=False) is None
    assert take(one, "edge3", PASSED, decides=False) is PASSED
    assert one.via == "edge3"
    one.is_failed = False
    one.follow(one.order, set(SWITCHES))
    assert take(one, "edge1", FAILED) is None
    assert one.via == "edge3"


def test_server_without_a_usable_switch_keeps_the_preferred_one() -> None:
    one = paths()
    one.follow(one.order, set())
    assert (one.via, one.checked) == ("edge1", {"edge1"})


# A fleet


def report(checks: HealthChecks, *results: tuple[str, str, Verdict], links: dict[str, str | None] | None = None) -> bool:
    """Take results of (server, switch), and return whether the health of any server changed."""
    found = [Result(checks._checked[s].targets[d].id, v, "timeout" if v is FAILED else None, 1.0, 1.0) for s, d, v in results]
    changed = checks._take(Report(found, links if links is not None else checks._links))
    checks.follow(checks._config)
    return changed


def health_of(checks: HealthChecks, name: str) -> ServerHealth:
    return checks._checked[name].checks.health


def sources_of(checks: HealthChecks, name: str) -> dict[str, str]:
    return {switch: target.source for switch, target in checks._checked[name].targets.items()}


@pytest.fixture
def healthy() -> HealthChecks:
    checks = HealthChecks(fleet())
    report(checks, *((name, one.paths.via, PASSED) for name, one in checks._checked.items()))
    return checks


def test_each_server_is_checked_through_one_switch(healthy: HealthChecks) -> None:
    found = [sources_of(healthy, f"web{sid}") for sid in range(6)]
    assert found == [{f"edge{sid % 3 + 1}": f"10.255.{sid % 3 + 1}.2"} for sid in range(6)]
    assert healthy.frozen == dict.fromkeys((f"10.255.{number}.2" for number in (1, 2, 3)), "no prober runs")


def test_servers_of_a_lost_switch_are_checked_through_others(healthy: HealthChecks, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    report(healthy, ("web0", "edge1", UNKNOWN), links={"10.255.1.2": "the switch does not answer pings"})
    assert sources_of(healthy, "web0") == {"edge2": "10.255.2.2"}
    assert sources_of(healthy, "web3") == {"edge3": "10.255.3.2"}
    assert all(health_of(healthy, f"web{sid}") is ServerHealth.HEALTHY for sid in range(6))
    assert "1 servers are now checked through switch edge2" in caplog.text
    report(healthy, links={"10.255.1.2": None})
    assert sources_of(healthy, "web0") == {"edge1": "10.255.1.2"}


def test_path_fault_removes_no_server(healthy: HealthChecks, caplog: pytest.LogCaptureFixture) -> None:
    report(healthy, ("web0", "edge1", FAILED))
    report(healthy, ("web0", "edge1", FAILED))
    target = healthy._checked["web0"].targets["edge2"]
    assert target.is_urgent
    assert not report(healthy, ("web0", "edge2", PASSED))
    assert health_of(healthy, "web0") is ServerHealth.HEALTHY
    assert healthy.effective is healthy._config
    assert "server web0 fails through switch edge1 only: timeout" in caplog.text
    assert sources_of(healthy, "web0") == {"edge1": "10.255.1.2", "edge2": "10.255.2.2"}
    faults = {metric.name: metric for metric in healthy.metrics()}["frontage_health_path_faults"]
    assert {sample.labels["device"]: sample.value for sample in faults.samples} == {"edge1": 1, "edge2": 0, "edge3": 0}


def test_confirmed_failure_removes_the_server_and_any_switch_sees_it_recover(healthy: HealthChecks) -> None:
    report(healthy, ("web0", "edge1", FAILED))
    report(healthy, ("web0", "edge1", FAILED))
    assert report(healthy, ("web0", "edge2", FAILED))
    assert {server.name for server in healthy.effective.servers if not server.active} == {"web0"}
    assert set(sources_of(healthy, "web0")) == set(SWITCHES)
    assert not report(healthy, ("web0", "edge3", PASSED), ("web0", "edge1", FAILED))
    assert report(healthy, ("web0", "edge3", PASSED), ("web0", "edge1", FAILED))
    assert healthy.effective is healthy._config


def test_checker_of_each_switch_has_its_own_entries() -> None:
    for number, own in enumerate(fleet().switches, 1):
        state = checker.entries(own.health, own.ports)
        assert {key.match[-1] for key in state} == {int(ip_address(f"10.255.{number}.2"))}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "addresses: [10.255.2.2]",
            "addresses: [10.255.1.2]",
            "devices[1].health.addresses[0]: another switch's checker has the address 10.255.1.2, too: give each checker its own",
        ),
        (
            "    health: { port: checker, addresses: [10.255.2.2] }\n",
            "",
            "vips[0].health: health checks need a checker: add the section `health` with `port` and `addresses`; in a fleet, to each",
        ),
        (
            "health: { port: checker, addresses: [10.255.3.2]",
            "health: { port: cheker, addresses: [10.255.3.2]",
            "devices[2].health.port: unknown port",
        ),
    ],
)  # fmt: skip
def test_invalid_checkers_of_a_fleet_are_rejected(old: str, new: str, problem: str) -> None:
    text = fleet_text()
    assert old in text
    with pytest.raises(ConfigError) as caught:
        loads(text.replace(old, new), Path("fleet.yaml"))
    assert problem in str(caught.value)


def test_shared_checker_is_rejected() -> None:
    text = fleet_text() + "health: { port: checker, addresses: [10.255.1.2] }\n"
    for number in (1, 2, 3):
        text = text.replace(f"    health: {{ port: checker, addresses: [10.255.{number}.2] }}\n", "")
    with pytest.raises(ConfigError) as caught:
        loads(text, Path("fleet.yaml"))
    assert "health: several switches have the same checker, so a check would not tell" in str(caught.value)
