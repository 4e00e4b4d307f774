# SPDX-License-Identifier: Apache-2.0
"""Health checks beside a controller: results, transitions, the effective configuration, status, metrics and the prober."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import IPv4Interface, ip_address
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from conftest import PROGRAM, Switch
from frontage.checks.messages import Report, Result
from frontage.checks.passive import Packets, read_packets
from frontage.checks.recovery import read_inactive
from frontage.checks.servers import Verdict
from frontage.checks.service import HealthChecks, missing_libraries
from frontage.checks.targets import sources
from frontage.cli.show import render
from frontage.config import Config, load, loads
from frontage.config.health import Checker, CheckKind, FailMode, HealthCheck
from frontage.p4.p4info import Pipeline
from frontage.p4.session import Session
from frontage.service.status import describe_config
from live import connected, installed, running
from scale import large_config

SOURCE = "127.0.0.2"


def config_of(
    servers: int = 4, vips: int = 1, *, address: str = "127.0.0.1", port: int = 80, text: dict[str, str] | None = None, **check: Any
) -> Config:
    """Return services on the loopback interface, which a configuration file could not have."""
    config = loads(large_config(servers, vips, **(text or {})), Path("large.yaml"))
    health = HealthCheck(**{"interval": 0.1, "timeout": 0.1, **check})
    uplink = config.ports[0].model_copy(update={"gateways": (IPv4Interface("127.0.0.1/8"),)})
    return config.model_copy(
        update={
            "ports": (uplink, *config.ports[1:]),
            "vips": tuple(
                vip.model_copy(update={"health": health, "address": ip_address(address), "port": port}) for vip in config.vips
            ),
            "health": Checker(port="uplink", addresses=(ip_address(SOURCE),)),
        }
    )


def target_id(checks: HealthChecks, name: str) -> int:
    """Return the id of the target through the switch whose results count."""
    one = checks._checked[name]
    return one.targets[one.paths.via].id


def results(
    checks: HealthChecks, verdict: Verdict, *names: str, at: float = 1000.0, error: str | None = None, times: int = 1
) -> bool:
    """Take the same result of these servers several times, and return whether the last one changed the health of any."""
    changed = False
    for _ in range(times):
        ids = [target_id(checks, name) for name in names]
        changed = checks._take(Report([Result(number, verdict, error, at, at) for number in ids]))
        if changed:
            checks.follow(checks._config)
    return changed


def active(config: Config) -> set[str]:
    return {server.name for server in config.servers if server.active}


def status_of(checks: HealthChecks) -> dict[str, Any]:
    status = describe_config(checks.effective)
    checks.describe(status)
    return status


def server_of(status: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(server for server in status["servers"] if server["name"] == name)
    return found


def samples(checks: HealthChecks) -> dict[str, dict[tuple[str, ...], float]]:
    return {metric.name: {tuple(sample.labels.values()): sample.value for sample in metric.samples} for metric in checks.metrics()}


def test_failed_servers_drain_and_recover(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    checks = HealthChecks(config_of())
    assert results(checks, Verdict.PASSED, "s0", "s1", "s2", "s3")
    assert checks.effective is checks._config
    assert not results(checks, Verdict.FAILED, "s1", times=2, error="connection refused")
    assert results(checks, Verdict.FAILED, "s1", error="connection refused", at=1003)
    assert active(checks.effective) == {"s0", "s2", "s3"}
    assert not results(checks, Verdict.PASSED, "s1", at=1004)
    assert results(checks, Verdict.PASSED, "s1", at=1005.5)
    assert checks.effective is checks._config
    assert "server s1 of VIP v0 has failed: connection refused" in caplog.text
    assert "server s1 of VIP v0 has recovered after 2.5 s" in caplog.text


@pytest.mark.parametrize(("mode", "left"), [(FailMode.OPEN, {"s0", "s1"}), (FailMode.CLOSED, set())])
def test_vip_without_healthy_servers(mode: FailMode, left: set[str]) -> None:
    checks = HealthChecks(config_of(2, fail_mode=mode))
    results(checks, Verdict.FAILED, "s0", "s1", error="connection refused")
    assert active(checks.effective) == left
    assert server_of(status_of(checks), "s0")["health"]["used"] == bool(left)


def test_health_survives_changes_that_keep_the_server() -> None:
    config = config_of()
    checks = HealthChecks(config)
    results(checks, Verdict.FAILED, "s0", "s1", error="connection refused")
    slower = config.vips[0].model_copy(update={"health": HealthCheck(interval=1, timeout=1)})
    moved = config.servers[1].model_copy(update={"port": 9999})
    ids = {name: target_id(checks, name) for name in checks._checked}
    new = config.model_copy(update={"vips": (slower,), "servers": (config.servers[0], moved, *config.servers[2:])})
    assert active(checks.follow(new)) == {"s1", "s2", "s3"}, "s1 is another server now"
    assert not ids.keys() - checks._checked.keys()
    assert not set(ids.values()) & {target_id(checks, name) for name in checks._checked}, "results of old checks are ignored"
    assert active(checks.follow(config.model_copy(update={"health": None}))) == {"s0", "s1", "s2", "s3"}


def test_results_of_removed_servers_are_ignored() -> None:
    config = config_of()
    checks = HealthChecks(config)
    old = target_id(checks, "s3")
    checks.follow(config.model_copy(update={"servers": config.servers[:3]}))
    assert not checks._take(Report([Result(old, Verdict.FAILED, "connection refused", 1, 1)]))


def test_status_shows_health(capsys: pytest.CaptureFixture[str]) -> None:
    checks = HealthChecks(config_of())
    results(checks, Verdict.PASSED, "s0", "s1", "s2")
    results(checks, Verdict.FAILED, "s1", times=3, error="status 503 [no")
    status = status_of(checks)
    one = server_of(status, "s1")
    assert one["state"] == "active", "the operator did not drain it"
    assert (one["health"]["state"], one["health"]["error"], one["health"]["used"]) == ("failed", "status 503 [no", False)
    assert server_of(status, "s3")["health"]["state"] == "unknown"
    vip = status["vips"][0]
    assert (vip["active"], vip["draining"], vip["failed"]) == (3, 0, 1)
    assert status["checker"]["frozen"] == {SOURCE: "no prober runs"}
    status["controller"] = {"phase": "installed", "role": "primary", "error": None, "config_error": None}
    status["devices"] = [{"address": "127.0.0.1:9559", "device_id": 1}]
    render(Console(width=300, force_terminal=False), status)
    shown = capsys.readouterr().out
    assert ": status 503 [no" in shown
    assert f"checks      from {SOURCE} are frozen: no prober runs" in shown


def test_metrics() -> None:
    checks = HealthChecks(config_of())
    results(checks, Verdict.PASSED, "s0", "s1")
    results(checks, Verdict.FAILED, "s1", times=3)
    results(checks, Verdict.UNKNOWN, "s2")
    found = samples(checks)
    assert found["frontage_server_health"]["v0", "s1", "failed"] == 1
    assert found["frontage_server_health"]["v0", "s1", "healthy"] == 0
    assert found["frontage_server_health"]["v0", "s3", "unknown"] == 1
    assert found["frontage_health_checks"] == {("v0", "passed"): 2, ("v0", "failed"): 3, ("v0", "unknown"): 1}
    assert found["frontage_health_transitions"] == {("v0", "healthy"): 2, ("v0", "failed"): 1}
    assert found["frontage_health_frozen"] == {(SOURCE,): 1}
    assert found["frontage_health_prober_restarts"] == {(): 0}


def test_pings_go_to_the_gateway_of_the_same_network() -> None:
    config = config_of()
    far = IPv4Interface("192.0.2.1/24")
    port = config.ports[0].model_copy(update={"gateways": (far, *config.ports[0].gateways)})
    (source,) = sources(config.model_copy(update={"ports": (port, *config.ports[1:])}))
    assert (source.ping.source, source.ping.gateway) == (SOURCE, "127.0.0.1")


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert missing_libraries(config_of()) == []
    assert missing_libraries(config_of(kind=CheckKind.HTTP)) == ["h11"]


def packets(checks: HealthChecks, at: float, **counts: tuple[int, ...]) -> bool:
    """Take the counters of servers, and return whether the health of any changed."""
    return checks._take_packets(at, {name: Packets(*pair) for name, pair in counts.items()})


def test_silent_server_fails_its_passive_checks() -> None:
    checks = HealthChecks(config_of(passive=True, passive_packets=10, passive_window=2))
    results(checks, Verdict.PASSED, "s0", "s1", "s2")
    assert not packets(checks, 0, s0=(500, 5), s1=(500, 5), s2=(500, 5), s3=(500, 5))
    assert not packets(checks, 1, s0=(600, 5), s1=(600, 5), s2=(600, 5), s3=(600, 5)), "the window is not over"
    for second in (2, 4):
        up = 500 + 100 * second
        assert not packets(checks, second, s0=(up, 5), s1=(up, second + 5), s2=(500 + 4 * second, 5), s3=(up, 5))
    assert packets(checks, 6, s0=(1100, 5), s1=(1100, 11), s2=(524, 5), s3=(1100, 5))
    found = {name: str(one.checks.health) for name, one in checks._checked.items()}
    assert found == {"s0": "failed", "s1": "healthy", "s2": "healthy", "s3": "unknown"}
    assert checks._checked["s0"].checks.error == "200 packets to it in 2.0 s, but none from it"


def test_server_that_answers_no_handshake_fails_although_its_connections_go_on() -> None:
    checks = HealthChecks(config_of(passive=True, passive_handshakes=10, passive_window=2))
    results(checks, Verdict.PASSED, "s0", "s1", "s2")
    for second in (0, 2, 4, 6):
        up = 100 * second
        changed = packets(checks, second, s0=(up, up, 5 * second), s1=(up, up, 5 * second, second), s2=(up, up, 4 * second))
        assert changed == (second == 6)
    assert {name: str(one.checks.health) for name, one in checks._checked.items()}["s0"] == "failed"
    assert checks._checked["s0"].checks.error == "10 handshakes with it in 2.0 s, but none was answered"
    assert {str(checks._checked[name].checks.health) for name in ("s1", "s2")} == {"healthy"}


def test_server_without_reports_fails_if_reports_are_wanted() -> None:
    for wanted in (True, False):
        checks = HealthChecks(config_of(passive=True, passive_packets=100, passive_reports=wanted, passive_window=2))
        results(checks, Verdict.PASSED, "s0", "s1", "s2")
        for second in (0, 2, 4, 6):
            n = 50 * second
            changed = packets(checks, second, s0=(n, n), s1=(n, n, 0, 0, second), s2=(n, n - second))
            assert changed == (wanted and second == 6)
        failed = {name for name, one in checks._checked.items() if str(one.checks.health) == "failed"}
        assert failed == ({"s0"} if wanted else set())
    checks = HealthChecks(config_of(fall=1, passive=True, passive_packets=100, passive_reports=True, passive_window=2))
    results(checks, Verdict.PASSED, "s0")
    packets(checks, 0, s0=(0, 0))
    packets(checks, 2, s0=(100, 100))
    assert checks._checked["s0"].checks.error == "100 packets from it in 2.0 s, but none with a report of its loads"


def test_passed_check_ends_a_series_of_failed_passive_checks() -> None:
    checks = HealthChecks(config_of(passive=True, passive_packets=10, passive_window=2))
    results(checks, Verdict.PASSED, "s0")
    for second in range(0, 20, 2):
        assert not packets(checks, second, s0=(100 * second, 5))
        if second % 4 == 0:
            results(checks, Verdict.PASSED, "s0")


@pytest.mark.parametrize("restarted", [(0, 5), (500, 0), (0, 0)])
def test_restart_of_the_switch_begins_a_new_window(restarted: tuple[int, int]) -> None:
    checks = HealthChecks(config_of(fall=1, passive=True, passive_packets=1, passive_window=2))
    results(checks, Verdict.PASSED, "s0")
    assert not packets(checks, 0, s0=(500, 5))
    assert not packets(checks, 4, s0=restarted)
    assert packets(checks, 6, s0=(restarted[0] + 1, restarted[1]))


async def test_unreadable_counters_begin_a_new_window() -> None:
    checks = HealthChecks(config_of(fall=1, passive=True, passive_packets=1, passive_window=0.5))
    results(checks, Verdict.PASSED, "s0")
    readings = [{"s0": Packets(1, 1)}, {}, {"s0": Packets(2, 1)}, {"s0": Packets(2, 1)}, {"s0": Packets(2, 1)}]
    done = asyncio.Event()

    async def read(_config: Config) -> dict[str, Packets]:
        if not readings:
            done.set()
            return {}
        return readings.pop(0)

    async def changed() -> None:
        raise AssertionError("no packet came in a window")

    task = asyncio.create_task(checks.watch(read, changed))
    async with asyncio.timeout(60):
        await done.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_packets_of_servers_are_read_from_the_switch(config_file: Path) -> None:
    config = load(config_file)
    check = HealthCheck(passive=True)
    vips = tuple(vip.model_copy(update={"health": check}) for vip in config.vips)
    checker = Checker(port="uplink", addresses=(ip_address("192.0.2.11"),))
    config = config.model_copy(update={"vips": vips, "health": checker})
    async with running(config) as controller:
        await installed(controller)
        session, pipeline = connected(controller)
        found = await read_packets(session, pipeline.schema, config)
        assert found == {server.name: Packets() for server in config.servers}
        assert "openings.packets" in pipeline.schema.counters


@asynccontextmanager
async def checking(checks: HealthChecks) -> AsyncIterator[asyncio.Queue[Config]]:
    """Run the checks, and yield the effective configurations."""
    changes: asyncio.Queue[Config] = asyncio.Queue()

    async def changed() -> None:
        changes.put_nowait(checks.effective)

    task = asyncio.create_task(checks.run(changed, lambda: True))
    try:
        async with asyncio.timeout(60):
            yield changes
    finally:
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()


async def test_prober_sees_servers_end_and_return() -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    checks = HealthChecks(config_of(2, port=port, timeout=0.1, fail_mode=FailMode.CLOSED))
    async with checking(checks) as changes:
        while samples(checks)["frontage_health_checks"].get(("v0", "passed"), 0) < 2:
            await asyncio.sleep(0.05)
        assert checks.frozen == {SOURCE: None}
        server.close()
        await server.wait_closed()
        while active(await changes.get()):
            pass
        assert server_of(status_of(checks), "s1")["health"]["error"] == "connection refused"
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", port)
        while active(await changes.get()) != {"s0", "s1"}:
            pass
    server.close()


async def test_ended_prober_is_started_again_and_health_stays() -> None:
    checks = HealthChecks(config_of(2, port=1, fail_mode=FailMode.CLOSED))
    async with checking(checks):
        while active(checks.effective):
            await asyncio.sleep(0.05)
        first = checks.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        while checks.pid in (first, None):
            assert not active(checks.effective)
            await asyncio.sleep(0.05)
        assert checks.restarts == 1
        assert samples(checks)["frontage_health_prober_restarts"] == {(): 1}
        while checks.frozen[SOURCE] is not None:
            await asyncio.sleep(0.05)
        assert not active(checks.effective)


async def test_controller_that_may_not_check_forgets_the_health() -> None:
    checks = HealthChecks(config_of(2, port=1, fail_mode=FailMode.CLOSED))
    allowed = [True]
    changes: asyncio.Queue[Config] = asyncio.Queue()

    async def changed() -> None:
        changes.put_nowait(checks.effective)

    task = asyncio.create_task(checks.run(changed, lambda: allowed[0]))
    async with asyncio.timeout(60):
        while active(await changes.get()):
            pass
        allowed[0] = False
        while active(await changes.get()) != {"s0", "s1"}:
            pass
        assert checks.pid is None
        assert checks.effective is checks._config
    task.cancel()
    await asyncio.wait([task])


async def test_new_controller_keeps_failed_servers_out(switch: Switch) -> None:
    files = {name: str(PROGRAM / f"frontage.{end}") for name, end in (("p4info", "p4info.txtpb"), ("json", "json"))}
    config = config_of(6, text={"address": switch.address, **files})
    first = HealthChecks(config)
    results(first, Verdict.FAILED, "s2", "s3")
    async with running(first.effective) as controller:
        before = await installed(controller)
    second = HealthChecks(config)

    async def recover(session: Session, pipeline: Pipeline, config: Config) -> None:
        assert second.recover(await read_inactive(session, pipeline.schema, config))
        await controller.change(second.effective)

    async with running(config) as controller:
        controller.before_install = recover
        assert await installed(controller) == before
        assert controller.health.writes.total() == 0
    assert active(second.effective) == {"s0", "s1", "s4", "s5"}
    assert results(second, Verdict.PASSED, "s2", times=2)
    assert active(second.effective) == {"s0", "s1", "s2", "s4", "s5"}
    assert not second.recover({"s2", "removed"}), "its health is known"


async def test_effective_configuration_reaches_the_switch(switch: Switch) -> None:
    files = {name: str(PROGRAM / f"frontage.{end}") for name, end in (("p4info", "p4info.txtpb"), ("json", "json"))}
    text = {"address": switch.address, **files}
    checks = HealthChecks(config_of(4, text=text))
    async with running(checks.effective) as controller:
        await installed(controller)
        results(checks, Verdict.FAILED, "s2")
        await controller.apply(checks.effective)
        assert controller.health.last is not None
        assert controller.health.last.leaf_ops == 1
        await installed(controller)
