# SPDX-License-Identifier: Apache-2.0
"""Health checks beside a running controller: runs the prober, judges its results, and reports."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from frontage.checks.checked import Checked, add_health, server_metrics
from frontage.checks.effect import effective
from frontage.checks.messages import Report, Result, encode_order
from frontage.checks.passive import Packets, PassiveChecks, passive_checks
from frontage.checks.paths import Paths, preferences
from frontage.checks.process import ProberError, ProberProcess
from frontage.checks.servers import ServerChecks, ServerHealth, Verdict
from frontage.checks.targets import Source, libraries, sources, targets
from frontage.config import Config

log = logging.getLogger(__name__)

POLL_INTERVAL = 0.25
"""Seconds between looks at whether this controller has to check."""
MIN_BACKOFF = 0.5
MAX_BACKOFF = 30.0
"""Seconds until a prober that ended is started again, doubling from the minimum to the maximum."""
PASSIVE_READS = 2
"""Readings of the counters in the shortest window of a passive check."""
SILENCE = 10.0
"""Seconds without a report after which the prober is started again. It reports every second."""


class HealthChecks:
    """The health of all servers. `effective` is the configuration without the failed ones."""

    def __init__(self, config: Config):
        self.effective = config
        self._config = config
        self._checked: dict[str, Checked] = {}
        """By name of the server."""
        self._names: dict[int, tuple[str, str]] = {}
        """Server and switch by id of the target."""
        self._next_id = 1
        self._process: ProberProcess | None = None
        self._problem: str | None = None
        """Why no prober runs."""
        self._links: dict[str, str | None] = {}
        self._sources: list[Source] = []
        self._verdicts: Counter[tuple[str, Verdict]] = Counter()
        self._transitions: Counter[tuple[str, ServerHealth]] = Counter()
        self._passive = PassiveChecks()
        self.restarts = 0
        self.follow(config)

    @property
    def config(self) -> Config:
        """The configuration with all servers."""
        return self._config

    @property
    def pid(self) -> int | None:
        """The process id of the prober; None if none runs."""
        return self._process.pid if self._process is not None else None

    def follow(self, config: Config) -> Config:
        """Check the servers of another configuration, and return what is effective of it. Known servers keep their health."""
        now = time.monotonic()
        before, self._checked = self._checked, {}
        vips = {vip.name: vip for vip in config.vips}
        self._config, self._sources = config, sources(config)
        self._links = {one.ping.source: self._links[one.ping.source] for one in self._sources if one.ping.source in self._links}
        switches = list(config.checkers)
        for server, target in targets(config):
            vip = vips[server.vip]
            endpoint = (vip.address, vip.protocol, vip.port, server.address, server.port, server.sid)
            old, check = before.get(server.name), vip.health
            assert check is not None
            if old is not None and old.endpoint == endpoint:
                old.checks.rise, old.checks.fall = check.rise, check.fall
                if old.base != target:
                    old.base, old.targets = target, {}
                self._checked[server.name] = old
            else:
                new = ServerChecks(check.rise, check.fall, since=now)
                paths = Paths(preferences(server.sid, switches))
                self._checked[server.name] = Checked(server.vip, endpoint, target, vip.address.version, new, paths)
        self._aim_all()
        self.effective = effective(config, self._failed())
        return self.effective

    def preview(self, config: Config) -> Config:
        """Return the effective part of another configuration, given the current health of servers."""
        endpoints = {server.name: server.identity for server in self._config.servers}
        failed = {server.name for server in config.servers if endpoints.get(server.name) == server.identity} & self._failed()
        return effective(config, failed)

    def _aim_all(self) -> None:
        """Check every server through the switches that are usable now."""
        switches = list(self._config.checkers)
        usable: dict[int, set[str]] = {4: set(), 6: set()}
        for source in self._sources:
            if self._links.get(source.ping.source) is None:
                usable[source.version].add(source.switch)
        moved: Counter[str] = Counter()
        for one in self._checked.values():
            via = one.paths.via
            one.paths.follow(preferences(one.base.sid, switches), usable[one.version])
            moved[one.paths.via] += one.paths.via != via
        for switch, count in moved.items():
            if count:
                log.info("%d servers are now checked through switch %s", count, switch)
        self._aim(self._checked)

    def _aim(self, names: Iterable[str]) -> None:
        """Let the prober check these servers through the switches that their paths name."""
        addresses = {(one.switch, one.version): one.ping.source for one in self._sources}
        for name in names:
            one = self._checked[name]
            before, one.targets = one.targets, {}
            for switch in one.paths.checked:
                address = addresses.get((switch, one.version), "")
                target = before.get(switch)
                if target is None or target.source != address:
                    urgent = one.paths.is_confirming and switch == one.paths.via
                    target = replace(one.base, id=self._new_id(), source=address, is_urgent=urgent)
                one.targets[switch] = target
        self._names = {target.id: (name, switch) for name, one in self._checked.items() for switch, target in one.targets.items()}
        self._order()

    def recover(self, names: AbstractSet[str]) -> bool:
        """Take these servers for failed unless their health is known. Return whether there are such servers.

        An earlier controller left them inactive in the switch. They recover as every failed server.
        """
        now = time.monotonic()
        unknown = [one for name, one in self._checked.items() if name in names and one.checks.health is ServerHealth.UNKNOWN]
        for one in unknown:
            one.checks.observe(now, Verdict.FAILED, "inactive in the switch when this controller took over")
            one.paths.is_failed = True
        if unknown:
            self._aim(names & self._checked.keys())
            self.effective = effective(self._config, self._failed())
        return bool(unknown)

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id

    def _failed(self) -> set[str]:
        return {name for name, one in self._checked.items() if one.checks.health is ServerHealth.FAILED}

    def _order(self) -> None:
        if self._process is not None:
            orders = [target for one in self._checked.values() for target in one.targets.values()]
            self._process.order(encode_order(orders, [source.ping for source in self._sources]))

    async def run(self, changed: Callable[[], Awaitable[None]], may_check: Callable[[], bool]) -> None:
        """Check until cancelled, while ``may_check`` is true. ``changed`` is called when `effective` is another configuration."""
        backoff = MIN_BACKOFF
        while True:
            if not self._checked or not may_check():
                if self._forget():
                    await changed()
                await asyncio.sleep(POLL_INTERVAL)
                continue
            started = time.monotonic()
            try:
                await self._run_prober(changed, may_check)
                continue
            except (ProberError, OSError) as error:
                self._problem = f"the prober failed: {error}"
                self.restarts += 1
                log.error("%s: starting it again", self._problem)
            if time.monotonic() - started > MAX_BACKOFF:
                backoff = MIN_BACKOFF
            await asyncio.sleep(backoff)
            backoff = min(2 * backoff, MAX_BACKOFF)

    def _forget(self) -> bool:
        """Forget the health of all servers, which another controller checks now. Return whether there was any."""
        if all(one.checks.health is ServerHealth.UNKNOWN for one in self._checked.values()):
            return False
        now = time.monotonic()
        for one in self._checked.values():
            one.checks = ServerChecks(one.checks.rise, one.checks.fall, since=now)
            one.paths = Paths(one.paths.order, one.paths.usable)
        self._aim(self._checked)
        self.effective = self._config
        return True

    async def _run_prober(self, changed: Callable[[], Awaitable[None]], may_check: Callable[[], bool]) -> None:
        """Take the reports of one prober until there is nothing to check any more. Raises ProberError."""
        async with ProberProcess() as process:
            self._process = process
            try:
                self._order()
                async for report in process.reports(SILENCE):
                    self._problem = None
                    if self._take(report):
                        self.effective = effective(self._config, self._failed())
                        await changed()
                    if not self._checked or not may_check():
                        return
            finally:
                self._process = None
                self._links = {}

    async def watch(
        self, read: Callable[[Config], Awaitable[Mapping[str, Packets]]], changed: Callable[[], Awaitable[None]]
    ) -> None:
        """Run the passive checks until cancelled. ``read`` returns the packets of the servers; none while it cannot read them."""
        while True:
            checks = passive_checks(self._config)
            await asyncio.sleep(min((check.passive_window for check in checks.values()), default=1.0) / PASSIVE_READS)
            packets = await read(self._config) if checks else {}
            if not packets:
                self._passive.forget()
            elif self._take_packets(time.monotonic(), packets):
                self.effective = effective(self._config, self._failed())
                await changed()

    def _take_packets(self, now: float, packets: Mapping[str, Packets]) -> bool:
        """Judge the packets of servers, and return whether the health of a server changed."""
        checks = passive_checks(self._config)
        any_changed = False
        for name, counts in packets.items():
            one = self._checked.get(name)
            if one is None or one.vip not in checks:
                continue
            error = self._passive.observe(now, name, counts, checks[one.vip])
            # The first active check decides about a new server.
            if error is not None and one.checks.health is not ServerHealth.UNKNOWN:
                changed = self._judge(name, one, now, Verdict.FAILED, error)
                if changed:
                    self._aim([name])
                any_changed |= changed
        return any_changed

    def _take(self, report: Report) -> bool:
        """Judge the results, and return whether the health of a server changed."""
        any_changed = False
        aimed: set[str] = set()
        for result in report.results:
            found = self._names.get(result.id)
            if found is None:
                continue
            name, switch = found
            one = self._checked[name]
            checked = one.paths.checked
            any_changed |= self._take_result(name, one, switch, result)
            if one.paths.checked != checked:
                aimed.add(name)
        if aimed:
            self._aim(aimed)
        self._take_links(report.links)
        return any_changed

    def _take_result(self, name: str, one: Checked, switch: str, result: Result) -> bool:
        """Judge the result of a check through a switch, and return whether the health of the server changed."""
        faults = set(one.paths.faults)
        verdict = one.paths.take(switch, result.verdict, result.error, rise=one.checks.rise, decides=one.fails_next)
        for fault in one.paths.faults.keys() - faults:
            log.warning("server %s fails through switch %s only: %s", name, fault, one.paths.faults[fault].error)
        for fault in faults - one.paths.faults.keys():
            log.info("server %s passes its checks through switch %s again", name, fault)
        if verdict is None:
            self._verdicts[one.vip, result.verdict] += 1
            return False
        return self._judge(name, one, result.end, verdict, result.error)

    def _take_links(self, links: Mapping[str, str | None]) -> None:
        """Take over which checkers are connected to their switches, and check their servers through others if they are not."""
        for source, error in links.items():
            known = self._links.get(source)
            if (source not in self._links or known is None) and error is not None:
                log.warning("health checks from %s are frozen: %s", source, error)
            elif known is not None and error is None:
                log.info("health checks from %s continue", source)
        before, self._links = self._links, dict(links)
        if {source for source, error in before.items() if error} != {source for source, error in links.items() if error}:
            self._aim_all()

    def _judge(self, name: str, one: Checked, now: float, verdict: Verdict, error: str | None) -> bool:
        """Take the result of one check, and return whether the health of the server changed."""
        self._verdicts[one.vip, verdict] += 1
        before, since = one.checks.health, one.checks.since
        if not one.checks.observe(now, verdict, error):
            return False
        one.paths.is_failed = one.checks.health is ServerHealth.FAILED
        self._transitions[one.vip, one.checks.health] += 1
        _log_transition(name, one, before, now - since)
        return True

    @property
    def frozen(self) -> dict[str, str | None]:
        """Why the health of servers does not change, by source address; None if it does."""
        if not self._checked:
            return {}
        default = self._problem or (None if self._process is not None else "no prober runs")
        names = [source.ping.source for source in self._sources]
        return {name: default or self._links.get(name, "no ping is answered yet") for name in names}

    def states(self) -> dict[str, str]:
        """Return the health of servers, by name."""
        return {name: one.checks.health.value for name, one in self._checked.items()}

    def describe(self, status: dict[str, Any]) -> None:
        """Add the health of servers to a status (`frontage.service.status`)."""
        add_health(status, self._config, self._checked)
        if self._checked:
            status["checker"] = {"pid": self.pid, "restarts": self.restarts, "frozen": self.frozen}

    def metrics(self) -> Iterable[Metric]:
        """Yield the metrics of health checks."""
        yield from server_metrics(dict(self._checked), list(self._config.checkers))
        checks = CounterMetricFamily("frontage_health_checks", "Health checks of servers, by result", labels=["vip", "result"])
        for (vip, verdict), count in list(self._verdicts.items()):
            checks.add_metric([vip, verdict.value], count)
        yield checks
        transitions = CounterMetricFamily("frontage_health_transitions", "Changes of servers' health", labels=["vip", "health"])
        for (vip, state), count in list(self._transitions.items()):
            transitions.add_metric([vip, state.value], count)
        yield transitions
        yield CounterMetricFamily("frontage_health_prober_restarts", "Starts of the prober after it failed", value=self.restarts)
        frozen = GaugeMetricFamily("frontage_health_frozen", "1 while the health of servers does not change", labels=["source"])
        for source, why in self.frozen.items():
            frozen.add_metric([source], float(why is not None))
        yield frozen


def _log_transition(name: str, one: Checked, before: ServerHealth, seconds: float) -> None:
    if one.checks.health is ServerHealth.FAILED:
        log.warning("server %s of VIP %s has failed: %s", name, one.vip, one.checks.error)
    elif before is ServerHealth.FAILED:
        log.info("server %s of VIP %s has recovered after %.1f s", name, one.vip, seconds)


def missing_libraries(config: Config) -> list[str]:
    """Return the Python modules that the checks of this configuration need, and that are not installed."""
    return [name for name in libraries(config) if importlib.util.find_spec(name) is None]
