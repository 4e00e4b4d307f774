# SPDX-License-Identifier: Apache-2.0
"""Runs the plan once and measures it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from frontage_testbed.datacentre.clients import Clients
from frontage_testbed.datacentre.settings import Treatment
from frontage_testbed.datacentre.testbed import Testbed
from frontage_testbed.load.workload import Arrival

from .live import LiveTable
from .metrics import SAMPLE_INTERVAL, ActiveFlows, PolicyRun, summarise
from .processor import ProcessorUse


class Sampler:
    """Collects the servers' counts of their active flows."""

    def __init__(self, testbed: Testbed) -> None:
        self._testbed = testbed
        self.names = tuple(s.name for s in testbed.server_addresses)
        self._times: list[float] = []
        self._counts: list[tuple[int, ...]] = []

    def sample(self, at: float) -> None:
        """Read all servers once."""
        self._times.append(at)
        self._counts.append(tuple(self._testbed.agents.active_flows()))

    def latest(self) -> dict[str, int]:
        """Return the last sample by server."""
        return dict(zip(self.names, self._counts[-1], strict=True)) if self._counts else {}

    def result(self) -> ActiveFlows:
        """Return all samples."""
        return ActiveFlows(self.names, tuple(self._times), tuple(self._counts))


def run_plan(testbed: Testbed, treatment: Treatment, plan: Sequence[Arrival], plan_file: Path, live: LiveTable) -> PolicyRun:
    """Replay the plan under a policy and a scheduler, and return the measurements after the last request has finished."""
    seconds = testbed.settings.seconds
    testbed.edge.apply(treatment)
    testbed.wait_until_ready()
    before = testbed.edge.counters()
    retransmitted = testbed.retransmitted()
    sampler = Sampler(testbed)
    clients = Clients(testbed.clients, testbed.generator(plan_file), testbed.scratch / "clients.log")
    use: ProcessorUse | None = None
    cpu: dict[str, float] = {}
    shown = 0.0

    def tick() -> None:
        nonlocal use, cpu, shown
        elapsed = clients.elapsed()
        if elapsed < 0:
            return
        if use is None:
            use = ProcessorUse(
                {"clients": clients.pids, "servers": testbed.server_pids, "demo": [1]}
                | {name: [pid] for name, pid in testbed.edge.pids().items()}
            )
        if elapsed <= seconds:
            sampler.sample(elapsed)
            cpu = use.cores()
        if time.monotonic() >= shown + 0.5:
            shown = time.monotonic()
            run = PolicyRun(treatment, tuple(clients.outcomes), sampler.result())
            summary = summarise(plan, run, seconds)
            live.update(treatment.name, elapsed, summary, len(clients.outcomes), sampler.latest())

    try:
        clients.run(tick, SAMPLE_INTERVAL)
    finally:
        clients.stop()
    after = testbed.edge.counters()
    resent = testbed.retransmitted()
    run = PolicyRun(
        treatment,
        testbed.with_servers(plan, clients.outcomes),
        sampler.result(),
        drops=_difference(after.drops, before.drops),
        refusals=_difference(after.refusals, before.refusals),
        steering=_difference(after.steering, before.steering),
        retransmitted=None if resent is None or retransmitted is None else resent - retransmitted,
        cpu=cpu,
    )
    live.finished(treatment.name, summarise(plan, run, seconds))
    return run


def _difference(after: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    """Return the counts between two readings."""
    return {name: count - before.get(name, 0) for name, count in after.items()}
