# SPDX-License-Identifier: Apache-2.0
"""Health of servers, connectivity of the checker, and their effect on the configuration: functions of their arguments."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontage.checks.effect import effective
from frontage.checks.link import Link, Proof
from frontage.checks.servers import MAX_DOUBLINGS, PENALTY_HALF_LIFE, ServerChecks, ServerHealth, Verdict
from frontage.config import Config, loads
from frontage.config.health import FailMode, HealthCheck
from frontage.config.vips import Server, ServerState
from scale import large_config

P, F, U = Verdict.PASSED, Verdict.FAILED, Verdict.UNKNOWN


def healthy(rise: int = 2, fall: int = 3) -> ServerChecks:
    server = ServerChecks(rise, fall, since=0)
    server.observe(0, P)
    return server


@pytest.mark.parametrize(
    ("verdicts", "health"),
    [
        ([], ServerHealth.UNKNOWN),
        ([U, U], ServerHealth.UNKNOWN),
        ([P], ServerHealth.HEALTHY),
        ([F], ServerHealth.FAILED),
        ([P, F, F], ServerHealth.HEALTHY),
        ([P, F, F, F], ServerHealth.FAILED),
        ([P, F, F, P, F, F], ServerHealth.HEALTHY),
        ([P, F, F, U, F], ServerHealth.FAILED),
        ([P, F, F, U, U], ServerHealth.HEALTHY),
        ([P, F, F, F, P], ServerHealth.FAILED),
        ([P, F, F, F, P, P], ServerHealth.HEALTHY),
        ([P, F, F, F, P, F, P], ServerHealth.FAILED),
        ([P, F, F, F, P, U, P], ServerHealth.HEALTHY),
    ],
)
def test_rise_and_fall(verdicts: list[Verdict], health: ServerHealth) -> None:
    server = ServerChecks(rise=2, fall=3, since=0)
    for second, verdict in enumerate(verdicts):
        server.observe(second, verdict)
    assert server.health is health


@given(st.lists(st.sampled_from([P, F, U])), st.integers(1, 4), st.integers(1, 4))
def test_health_changes_only_after_enough_equal_results(verdicts: list[Verdict], rise: int, fall: int) -> None:
    server = ServerChecks(rise, fall, since=0)
    known: list[Verdict] = []
    for second, verdict in enumerate(verdicts):
        before = server.health
        changed = server.observe(second, verdict)
        assert changed == (server.health is not before)
        if verdict is not U:
            known.append(verdict)
        if changed:
            assert server.since == second
            if before is ServerHealth.HEALTHY:
                assert known[-fall:] == [F] * fall
            elif before is ServerHealth.FAILED:
                assert known[-rise:] == [P] * rise
            else:
                assert len(known) == 1


@given(st.lists(st.floats(0, 100), max_size=40))
def test_unknown_results_never_change_health(gaps: list[float]) -> None:
    for server in (ServerChecks(1, 1, since=0), healthy(1, 1)):
        before, now = server.health, 0.0
        for gap in gaps:
            now += gap
            assert not server.observe(now, U, "network unreachable")
        assert server.health is before


def fail_and_recover(server: ServerChecks, now: float) -> int:
    """Fail the server at once, and return the passed checks that it needed to recover, one each millisecond."""
    for _ in range(server.fall):
        server.observe(now, F)
    assert server.health is ServerHealth.FAILED
    needed = 0
    while server.health is ServerHealth.FAILED:
        needed += 1
        server.observe(now + needed / 1000, P)
    return needed


def test_flapping_server_needs_twice_as_many_passed_checks_each_time() -> None:
    server = healthy()
    needed = [fail_and_recover(server, second) for second in range(8)]
    # The penalty decays a little between the failures.
    assert needed[0] == 2
    assert needed[1] == 4
    assert needed[2:4] == [8, 16]
    assert max(needed) <= 2 << MAX_DOUBLINGS
    assert needed == sorted(needed)


def test_penalty_decays() -> None:
    server = healthy()
    for second in range(4):
        fail_and_recover(server, second)
    assert fail_and_recover(server, 4 + 10 * PENALTY_HALF_LIFE) <= 3


def test_error_is_that_of_the_last_failed_check() -> None:
    server = healthy()
    server.observe(1, F, "connection refused")
    assert server.error == "connection refused"
    server.observe(2, P)
    assert server.error is None
    for second in range(3, 6):
        server.observe(second, F, "no answer within 1 s")
    server.observe(7, P)
    assert (server.health, server.error) == (ServerHealth.FAILED, "no answer within 1 s")


def config_of(servers: int, vips: int, mode: FailMode | None) -> Config:
    config = loads(large_config(servers, vips), Path("large.yaml"))
    check = HealthCheck(fail_mode=mode) if mode is not None else None
    return config.model_copy(update={"vips": tuple(vip.model_copy(update={"health": check}) for vip in config.vips)})


CONFIGS = {mode: config_of(6, 2, mode) for mode in (None, *FailMode)}


def active(config: Config) -> set[str]:
    return {server.name for server in config.servers if server.active}


@given(st.sampled_from(list(FailMode)), st.sets(st.integers(0, 5)), st.sets(st.integers(0, 5)))
def test_effect_of_failed_servers(mode: FailMode, failed: set[int], draining: set[int]) -> None:
    base = CONFIGS[mode]
    servers = tuple(
        server.model_copy(update={"state": ServerState.DRAINING}) if server.sid in draining else server for server in base.servers
    )
    config = base.model_copy(update={"servers": servers})
    result = effective(config, {f"s{i}" for i in failed} | {"removed"})
    for vip in ("v0", "v1"):
        usable = {server.name for server in config.servers if server.vip == vip} & active(config)
        left = usable - {f"s{i}" for i in failed}
        found = {server.name for server in result.servers if server.vip == vip} & active(result)
        assert found == (left or (usable if mode is FailMode.OPEN else set()))
    # Only states differ, and the order of servers is the same.
    assert [lasting(server) for server in result.servers] == [lasting(server) for server in base.servers]


def lasting(server: Server) -> dict[str, object]:
    """Return the fields of a server but its state."""
    return {name: getattr(server, name) for name in Server.model_fields if name != "state"}


def test_vips_without_checks_are_not_affected() -> None:
    config = CONFIGS[None]
    assert effective(config, {"s0"}) is config
    assert effective(CONFIGS[FailMode.OPEN], set()) is CONFIGS[FailMode.OPEN]


def pinged(*, answered: list[float], lost: list[float], outstanding: list[float]) -> Link:
    link = Link()
    for at in (*answered, *lost, *outstanding):
        link.sent(at)
    for at in answered:
        link.answered(at)
    for at in lost:
        link.lost(at)
    return link


@pytest.mark.parametrize(
    ("answered", "lost", "outstanding", "proof"),
    [
        ([], [], [], Proof.OPEN),
        ([9, 11, 21], [], [], Proof.CONNECTED),
        ([9, 11, 19], [], [], Proof.OPEN),
        ([9, 11], [], [21], Proof.OPEN),
        ([21], [5], [], Proof.CONNECTED),
        ([9, 21], [12], [], Proof.DISCONNECTED),
        ([9, 11, 21], [22], [], Proof.DISCONNECTED),
        ([9, 11], [21], [], Proof.DISCONNECTED),
        ([9, 21], [], [12], Proof.OPEN),
        ([9, 21], [], [22], Proof.CONNECTED),
    ],
)
def test_check_from_10_to_20_needs_proof(answered: list[float], lost: list[float], outstanding: list[float], proof: Proof) -> None:
    assert pinged(answered=answered, lost=lost, outstanding=outstanding).proof(10, 20) is proof


def test_link_is_down_until_the_first_answer() -> None:
    link = pinged(answered=[], lost=[], outstanding=[1, 2, 3])
    assert not link.is_up
    link.answered(1)
    assert link.is_up
    link.lost(2)
    assert not link.is_up
    link.answered(2)
    assert not link.is_up, "the answer came too late"
    link.answered(3)
    assert link.is_up


@given(st.lists(st.tuples(st.floats(0.01, 1), st.booleans()), min_size=1, max_size=30), st.floats(0, 10), st.floats(0, 3))
def test_lost_ping_during_a_check_excuses_the_server(pings: list[tuple[float, bool]], begin: float, length: float) -> None:
    link, at = Link(), 0.0
    for gap, is_answered in pings:
        at += gap
        link.sent(at)
        (link.answered if is_answered else link.lost)(at)
        if not is_answered and at >= begin:
            assert link.proof(begin, begin + length) is Proof.DISCONNECTED
    assert link.is_up == pings[-1][1]
