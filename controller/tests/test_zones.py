# SPDX-License-Identifier: Apache-2.0
"""Zones: which servers a switch uses, spill-over and failover, validation, and the agreement of the switches about cookies."""

from __future__ import annotations

from pathlib import Path

import pytest

from frontage.checks.effect import effective
from frontage.checks.recovery import inactive
from frontage.config import Config, ConfigError, loads
from frontage.config.health import HealthCheck
from frontage.config.vips import Policy
from frontage.service.status import describe_config, spilling
from frontage.state.activation import is_activation
from frontage.state.allocation import Installed, allocate
from frontage.state.desired import desired
from test_health_paths import fleet_text

FILE = Path("fleet.yaml")


def text(*, spill_over: str = "0.7", policy: str = "hash") -> str:
    """Return a fleet: edge1 is in zone one with web0 to web3, edge2 in zone two with web4 and web5, and edge3 in no zone."""
    found = fleet_text(3, 6).replace("policy: cclb4", f"policy: {policy}, spill_over: {spill_over}")
    for name, zone in (("edge1", "one"), ("edge2", "two")):
        found = found.replace(f"- name: {name}\n", f"- name: {name}\n    zone: {zone}\n")
    for number in range(6):
        found = found.replace(f"sid: {number} }}", f"sid: {number}, zone: {'one' if number < 4 else 'two'} }}")
    return found


def config_of(*failed: int, spill_over: str = "0.7", policy: str = "hash") -> Config:
    return effective(loads(text(spill_over=spill_over, policy=policy), FILE), {f"web{number}" for number in failed})


def used(config: Config) -> list[dict[str, int]]:
    """Return the shares of the servers that each switch uses."""
    return [{server.name[3:]: server.share for server in own.servers if server.active} for own in config.switches]


WHOLE = dict.fromkeys("012345", 100)


def test_switches_prefer_the_servers_of_their_zone() -> None:
    assert used(config_of()) == [dict.fromkeys("0123", 100), dict.fromkeys("45", 100), WHOLE]
    assert used(config_of(0)) == [dict.fromkeys("123", 100), dict.fromkeys("45", 100), dict.fromkeys("12345", 100)]


def test_other_zones_replace_what_is_missing() -> None:
    # 0.5 of the weight is healthy, and 0.2 * 4 of 2 is missing.
    assert used(config_of(0, 1))[0] == {"2": 100, "3": 100, "4": 40, "5": 40}
    # 0.25: 0.45 * 4 of 2.
    assert used(config_of(0, 1, 2))[0] == {"3": 100, "4": 90, "5": 90}
    # The other zone lacks 0.2 * 2 of 4.
    assert used(config_of(4))[1] == {"0": 10, "1": 10, "2": 10, "3": 10, "5": 100}


def test_zone_without_healthy_servers_uses_all_others() -> None:
    assert used(config_of(0, 1, 2, 3))[0] == {"4": 100, "5": 100}
    assert used(config_of(0, 1, 2, 3, 4))[0] == {"5": 100}
    assert used(config_of(0, 1, 2, 3, 4, 5)) == [dict.fromkeys("0123", 100), dict.fromkeys("45", 100), WHOLE], "fail_mode: open"


def test_policies_that_compare_loads_use_all_servers_while_they_spill() -> None:
    for policy in ("cclb4", "cheetah-ll"):
        assert used(config_of(0, 1, policy=policy))[0] == dict.fromkeys("2345", 100)
        assert used(config_of(0, policy=policy))[0] == dict.fromkeys("123", 100)


def test_threshold_is_that_of_the_vip() -> None:
    assert used(config_of(0, 1, spill_over="0.5"))[0] == dict.fromkeys("23", 100)
    assert used(config_of(0, spill_over="1"))[0] == {"1": 100, "2": 100, "3": 100, "4": 50, "5": 50}


def test_drained_servers_leave_the_zone_and_servers_without_a_zone_are_in_each() -> None:
    config = loads(text().replace("sid: 0, zone: one", "sid: 0, state: draining, zone: one"), FILE)
    assert used(effective(config, {"web1"}))[0] == dict.fromkeys("23", 100) | {"4": 5, "5": 5}
    assert used(config)[0] == dict.fromkeys("123", 100)
    config = loads(text().replace("sid: 0, zone: one", "sid: 0"), FILE)
    assert used(config)[1] == dict.fromkeys("045", 100)


def test_spill_over_counts_for_a_slow_start() -> None:
    config = config_of(0, 1)
    servers = tuple(server.with_share(50) if server.name == "web4" else server for server in config.servers)
    assert used(config.model_copy(update={"servers": servers}))[0] == {"2": 100, "3": 100, "4": 20, "5": 40}


@pytest.mark.parametrize("policy", list(Policy))
def test_all_switches_know_all_servers(policy: str) -> None:
    tables = []
    for own in config_of(0, policy=policy).switches:
        state = desired(own, allocate(own, Installed({})))
        tables.append({key: action for key, action in state.items() if key.table in ("server.server4", "insight.score_af")})
        assert len([key for key in state if key.table == "choice.member"]) == 6
    assert tables[0] == tables[1] == tables[2]


def test_failures_are_activations_of_each_switch() -> None:
    config = loads(text(), FILE)
    for failed in ({"web0"}, {"web0", "web1"}, {"web4"}):
        for before, after in zip(config.switches, effective(config, failed).switches, strict=True):
            assert is_activation(before, after)


def test_servers_of_other_zones_do_not_count_as_failed_after_a_restart() -> None:
    config = config_of(0)
    one = config.switches[0]
    installed = Installed(desired(one, allocate(one, Installed({}))))
    healthy = loads(text(), FILE)
    assert inactive(installed, healthy.switches[0]) == {"web0"}


def test_status_shows_zones_and_spills() -> None:
    assert [spilling(own) for own in config_of().switches] == [[], [], []]
    assert [spilling(own) for own in config_of(0, 1).switches] == [["shop"], [], []]
    assert [server["zone"] for server in describe_config(config_of())["servers"]] == ["one"] * 4 + ["two"] * 2


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("sid: 5, zone: two", "sid: 5, zone: tow", 'servers[5].zone: unknown zone "tow": use one of the zones of switches: one, two'),
        ("spill_over: 0.7", "spill_over: 1.5", 'vips[0].spill_over: "1.5" is above the maximum of 1.0: give the healthy part'),
        ("spill_over: 0.7", "spill_over: 0", 'vips[0].spill_over: "0" must be greater than 0.0: give the healthy part'),
    ],
)  # fmt: skip
def test_invalid_zones_are_rejected(old: str, new: str, problem: str) -> None:
    assert old in text()
    with pytest.raises(ConfigError) as caught:
        loads(text().replace(old, new), FILE)
    assert problem in str(caught.value)


def test_spill_over_needs_a_zone() -> None:
    with pytest.raises(ConfigError) as caught:
        loads(fleet_text().replace("policy: cclb4", "policy: cclb4, spill_over: 0.7"), FILE)
    assert "vips[0].spill_over: no switch has a zone: add `zone` to `device` or `devices`, and to the servers" in str(caught.value)


def test_fields_are_optional() -> None:
    config = loads(fleet_text(), FILE)
    assert (config.vips[0].spill_over, config.servers[0].zone, config.devices[0].zone) == (None, None, None)
    assert isinstance(config.vips[0].health, HealthCheck)
    assert [own.servers for own in config.switches] == [config.servers] * 3
