# SPDX-License-Identifier: Apache-2.0
"""Slow start: the shares of servers over time, and their effect on pools, scores and hashes."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import partial
from pathlib import Path

import texts
from conftest import EXAMPLE
from frontage import limits
from frontage.config import Config, edit, load, loads
from frontage.config.vips import START_SHARES, Policy, ServerState
from frontage.service.daemon import Service
from frontage.service.status import describe_config
from frontage.state.allocation import Installed, allocate
from frontage.state.blocks import assign, maglev
from frontage.state.resolved import resolve
from frontage.state.scores import scores, server_scores
from frontage.state.slow_start import SlowStart
from live import edited, serving, until
from test_activation import with_states

problems = partial(texts.problems, file=Path("demo.yaml"))


def config_of(slow_start: float = 9, policy: Policy = Policy.CHEETAH_RR) -> Config:
    config = with_states(load(EXAMPLE))
    vips = (vip.model_copy(update={"slow_start": slow_start, "policy": policy}) for vip in config.vips)
    return config.model_copy(update={"vips": tuple(vips)})


def shares(config: Config) -> dict[str, int]:
    """Return the shares of the servers that do not have all of it."""
    return {server.name: server.share for server in config.servers if server.share < 100}


def test_share_of_a_recovered_server_grows_in_steps() -> None:
    config = config_of()
    start = SlowStart(config)
    assert start.follow(config, 0) is config
    start.follow(with_states(config, "web1"), 100)
    found = []
    for now in (200, 202.9, 203.1, 206.1, 208.9, 209.1):
        assert start.is_due(now) == (now in (203.1, 206.1, 209.1))
        found.append(shares(start.follow(config, now)).get("web1", 100))
    assert found == [25, 25, 50, 75, 75, 100]
    assert start.follow(config, 210) is config
    assert not start.is_due(1e9)


def test_new_server_starts_slowly_and_others_do_not() -> None:
    config = config_of()
    start = SlowStart(config.model_copy(update={"servers": config.servers[1:]}))
    assert shares(start.follow(config, 0)) == {config.servers[0].name: 25}


def test_server_that_fails_again_begins_again() -> None:
    config = config_of()
    start = SlowStart(with_states(config, "web1"))
    start.follow(config, 0)
    assert shares(start.follow(config, 5)) == {"web1": 50}
    start.follow(with_states(config, "web1"), 6)
    assert shares(start.follow(config, 7)) == {"web1": 25}


def test_servers_start_at_once_without_another_one_or_without_slow_start() -> None:
    config = config_of()
    all_down = with_states(config, *(server.name for server in config.servers))
    assert SlowStart(all_down).follow(config, 0) is config
    at_once = config_of(0)
    assert SlowStart(with_states(at_once, "web1")).follow(at_once, 0) is at_once


def test_pool_and_hash_follow_the_share() -> None:
    config = config_of()
    vip = config.vips[0].name
    servers = [server.model_copy(update={"weight": 1}) for server in config.servers if server.vip == vip]
    for percent in (*START_SHARES, 100):
        some = [servers[0].with_share(percent), *servers[1:]]
        counts = Counter(assign.pool(some))
        assert all(Fraction(counts[servers[0].sid], counts[server.sid]) == Fraction(percent, 100) for server in servers[1:])
        slots = Counter(maglev.slot_sids(some, 1))
        whole = Counter(maglev.slot_sids(servers, 1))
        assert abs(slots[servers[0].sid] / whole[servers[0].sid] - percent / 100) < 0.2
    only = [server.with_share(25) for server in servers]
    assert maglev.slot_sids(only, 1) == maglev.slot_sids(servers, 1), "no other server could take the rest"


def test_score_weighs_the_flows_of_a_starting_server_more() -> None:
    config = config_of(policy=Policy.CCLB4)
    vip, one = config.vips[0], config.servers[0]
    plain = server_scores(config.vips, config.servers)
    started = server_scores(config.vips, [one.with_share(25), *config.servers[1:]])
    lightest = min(server.weight for server in config.servers if server.vip == one.vip)
    assert started[one.sid] == scores(vip.effective_alpha, Fraction(4 * lightest, one.weight))
    assert {sid: found for sid, found in started.items() if sid != one.sid} == {
        sid: found for sid, found in plain.items() if sid != one.sid
    }
    # The classes of all steps are installed in advance, so that a step writes one entry of the server only.
    allocation = allocate(config, Installed({}))
    for percent in START_SHARES:
        resolve(config.model_copy(update={"servers": (one.with_share(percent), *config.servers[1:])}), allocation)


def test_too_many_score_classes_are_rejected() -> None:
    weights = "".join(
        f"  - {{ name: w{i}, vip: shop, address: 10.0.{i}.1, port: 80, sid: {100 + i}, weight: {i + 1} }}\n" for i in range(40)
    )
    text = EXAMPLE.read_text(encoding="utf-8").replace("servers:\n", f"servers:\n{weights}")
    assert not any("relative weight" in line for line in problems(text))
    slow = texts.replaced(text, "    look_ahead: 65536", "    slow_start: 10\n    look_ahead: 65536")
    (line,) = [line for line in problems(slow) if "relative weight" in line]
    assert f"room for {limits.MAX_CLASSES}: use fewer different weights or alphas, or no slow start" in line


def test_policy_without_weights_has_no_slow_start() -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    text = texts.replaced(text, "    look_ahead: 65536", "    slow_start: 10\n    look_ahead: 65536")
    assert loads(text, EXAMPLE).vips[0].slow_start == 10
    found = problems(texts.replaced(text, "policy: cclb4", "policy: cheetah-ll"))
    assert any("vips[0].slow_start: cheetah-ll ignores weights, so it cannot give" in line for line in found), found


async def test_added_server_starts_slowly_in_the_switch(config_file: Path) -> None:
    text = config_file.read_text()
    config_file.write_text(text.replace("    policy:", "    slow_start: 1.5\n    policy:", 1))
    assert load(config_file).vips[0].slow_start == 1.5
    async with serving(Service(config_file)) as service:
        await service.fleet.installed()
        one = service.fleet.config.servers[0].name
        edited(config_file, lambda text: edit.set_server_state(text, one, ServerState.DRAINING))
        await service.changes.installed()
        edited(config_file, lambda text: edit.set_server_state(text, one, ServerState.ACTIVE))
        await service.changes.installed()
        seen = []

        def is_over() -> bool:
            share = next(s["share"] for s in describe_config(service.fleet.config)["servers"] if s["name"] == one)
            seen.append(share)
            return bool(share == 100)

        await until(is_over)
        assert seen == sorted(seen)
        assert seen[0] < 100
        await service.fleet.installed()
