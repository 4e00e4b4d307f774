# SPDX-License-Identifier: Apache-2.0
"""Ports with a scheduler: checks of the file, and the state of a real switch."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import EXAMPLE
from frontage import limits
from frontage.config import Config, ConfigError, loads
from frontage.p4 import reasons
from frontage.p4.entries import Action, Key
from frontage.p4.replication import CLONE_SESSION
from frontage.service.status import read_status
from frontage.state.blocks import aifo, scheduler
from live import connected, installed, running

SESSION = Key(CLONE_SESSION, (limits.WORKER_SESSION,))


def scheduled(text: str, lines: str) -> str:
    """Return the example with these lines added to its first port."""
    return text.replace("    role: client\n", "    role: client\n" + "".join(f"    {line}\n" for line in lines.splitlines()), 1)


def config(lines: str) -> Config:
    return loads(scheduled(EXAMPLE.read_text(), lines), EXAMPLE)


@pytest.mark.parametrize(
    ("lines", "where", "says"),
    [
        (
            "scheduler: { kind: wfq }",
            "17:24: ports[0].scheduler.kind",
            'unknown kind "wfq": use one of fifo, aifo, sp-pifo',
        ),
        ("scheduler: { kind: aifo }", "17:24: ports[0].scheduler.kind", "aifo needs the capacity of the queue: add `capacity`"),
        ("scheduler: { kind: fifo, k: 0.1 }", "17:30: ports[0].scheduler.k", 'unknown key "k" for fifo: remove it'),
        (
            "scheduler: { kind: sp-pifo, window: 3 }",
            "17:33: ports[0].scheduler.window",
            'unknown key "window" for sp-pifo: remove it',
        ),
        (
            "scheduler: { kind: fifo, default_rank: 3 }",
            "17:30: ports[0].scheduler.default_rank",
            'unknown key "default_rank" for fifo',
        ),
        (
            "scheduler: { kind: aifo, capacity: 9, window: 21 }",
            "17:51: ports[0].scheduler.window",
            '"21" is above the maximum of 20: give the size',
        ),
        (
            "scheduler: { kind: aifo, capacity: 9, k: 1 }",
            "17:46: ports[0].scheduler.k",
            '"1" must be less than 1.0: give the fraction',
        ),
        (
            "scheduler: { kind: aifo, capacity: 99, report_every: 12 }",
            "17:58: ports[0].scheduler.report_every",
            "12 is not a power of two: use 8",
        ),
        (
            "scheduler: { kind: aifo, capacity: 99, report_every: 16 }",
            "17:58: ports[0].scheduler.report_every",
            "an idle queue would look fuller than k * capacity: use at most 8, or a larger k",
        ),
        ("ecn_threshold: 0", "17:20: ports[0].ecn_threshold", '"0" is below the minimum of 1: give the queue length'),
    ],
)
def test_error_has_position_problem_and_fix(lines: str, where: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(lines)
    (problem,) = str(caught.value).splitlines()
    assert problem.startswith(f"{EXAMPLE}:{where}: "), problem
    assert says in problem


def test_entries_of_schedulers() -> None:
    """Ranks are quantised, the mask is the power of two minus 1, and ports without a threshold never mark."""
    found = config(
        "scheduler: { kind: aifo, capacity: 100, sample: 3, k: 0.2, report_every: 16, default_rank: 512 }\necn_threshold: 65"
    )
    port = {Key(scheduler.PORT, (1,)): Action("use_aifo", (65, 32, 20, 3, 100, 15))}
    assert scheduler.entries(found.ports) == port
    table = aifo.entries(found.ports)
    assert [table[Key(aifo.LIMIT, (1, n))].params[0] for n in (0, 1, 10, 19, 20)] == [100, 96, 60, 24, 20]
    assert len(table) == 21
    rest = {
        "scheduler: { kind: sp-pifo, default_rank: 7 }": Action("use_sp_pifo", (limits.MAX_DEPTH, 0)),
        "scheduler: { kind: fifo }": Action("use_fifo", (limits.MAX_DEPTH,)),
        "ecn_threshold: 5": Action("use_fifo", (5,)),
    }
    for lines, action in rest.items():
        assert scheduler.entries(config(lines).ports) == {Key(scheduler.PORT, (1,)): action}
    assert scheduler.entries(config("").ports) == {}


def test_bands_are_named_by_their_smallest_time() -> None:
    names = [reason.name for reason in reasons.bands().values()]
    assert names[:5] == ["0", "64", "128", "256", "512"]
    assert len(names) == limits.RANK_BANDS


@pytest.fixture
def text(config_file: Path) -> str:
    return config_file.read_text()


async def test_schedulers_are_added_changed_and_removed(config_file: Path, text: str) -> None:
    first, second = (scheduled(text, f"scheduler: {{ kind: aifo, capacity: 100, k: {k} }}") for k in (0.1, 0.5))
    async with running(loads(first, config_file)) as controller:
        state = await installed(controller)
        assert state[SESSION] == Action("replicas", (0, 510, 1))
        assert state[Key(aifo.LIMIT, (1, 20))] == Action("set_limit", (10,))
        writes = controller.health.writes.copy()
        await controller.apply(loads(second, config_file))
        # All limits but that of the smallest rank, which is the capacity of the queue.
        assert controller.health.writes - writes == {"modified": 20}
        session, pipeline = connected(controller)
        status = await read_status(session, pipeline.schema, controller.config)
        assert status["refusals"]["64"] == {"packets": 0, "bytes": 0}
    async with running(loads(second, config_file)) as restarted:
        await installed(restarted)
        assert restarted.health.writes.total() == 0
        await restarted.apply(loads(text, config_file))
        state = await installed(restarted)
        assert SESSION not in state
        assert not [key for key in state if key.table in (aifo.LIMIT, scheduler.PORT)]
        # The port, its limits, the session, and the tables that open cookies of QUIC servers.
        assert restarted.health.writes["deleted"] == 1 + 21 + 1 + 16 * 256
