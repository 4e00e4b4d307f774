# SPDX-License-Identifier: Apache-2.0
"""``frontage up``: controllers that follow a configuration file, and the service that takes commands and exports metrics."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from prometheus_client.core import Metric

from frontage.bgp.learner import Learner
from frontage.bgp.metrics import learner_metrics, speaker_metrics
from frontage.bgp.speaker import Speaker
from frontage.checks import service as checks
from frontage.checks.passive import Packets, read_packets
from frontage.checks.recovery import read_inactive
from frontage.checks.service import HealthChecks
from frontage.config import Config, ConfigError, load
from frontage.config.discovery import DnsSource
from frontage.config.document import Problem
from frontage.discovery import sources
from frontage.discovery.service import Discovery, with_discovered
from frontage.mapping.service import MappingService, missing_libraries
from frontage.p4.errors import SwitchError
from frontage.p4.p4info import Pipeline, PipelineError
from frontage.p4.session import Session
from frontage.service.control import Answer, ControlServer, Request, socket_path
from frontage.service.fleet import Fleet
from frontage.service.health import Phase
from frontage.service.metrics import Endpoint
from frontage.service.route import route_to
from frontage.service.status import fleet_status, read_syns
from frontage.service.syn_defence import SynDefences
from frontage.state import steering_file
from frontage.state.errors import ReconcileError
from frontage.state.reconcile import plan
from frontage.state.slow_start import SlowStart
from frontage.state.steering import Change

log = logging.getLogger(__name__)

POLL_INTERVAL = 0.25
"""Seconds between checks of the file. A watch would be lost when an editor or command replaces the file."""

APPLY_TIMEOUT = 60.0
"""Seconds that a command waits for the installation of its change."""


class Service:
    """The controllers of the switches, and their services, for one configuration file."""

    def __init__(self, file: Path, *, election_id: int | None = None):
        """Load the configuration. Raises ConfigError and ControlError."""
        self.file = file
        self.config_error: str | None = None
        self._stamp = _stamp(file)
        config = _load(file)
        self.discovery = Discovery(file, self._servers_changed)
        self.checks = HealthChecks(with_discovered(config, self.discovery.rosters))
        self.slow_start = SlowStart(self.checks.effective)
        self.defences = SynDefences()
        self.fleet = Fleet(
            self.defences.effective(self.checks.effective),
            election_id=election_id,
            mapping=steering_file.for_config(config),
            before_install=self._recover_health,
        )
        self._read = config
        """The content of the file when it was last valid."""
        self._others = _other_stamps(config)
        self.control = ControlServer(socket_path(config, file), self._handle)
        self.end_users = MappingService(self.fleet)
        self.speaker = Speaker(self.fleet)
        self.learner = Learner(self.fleet, lambda: self.speaker.sessions)
        self._was_primary = False
        self.endpoint: Endpoint | None = None
        self._metrics_error: str | None = None
        self._loading = asyncio.Lock()

    async def run(self) -> None:
        """Run until cancelled. Raises ControlError if the control socket is unavailable at the start."""
        await self.control.start(take_over=False)
        await self._serve_metrics()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.fleet.run())
                tasks.create_task(self.speaker.run())
                tasks.create_task(self.learner.run())
                tasks.create_task(self._watch())
                tasks.create_task(self._grow_shares())
                tasks.create_task(self.checks.run(self._on_effect, self._may_check))
                tasks.create_task(self.checks.watch(self._read_packets, self._on_effect))
                tasks.create_task(self.defences.run(self._read_syns, self._on_effect))
        finally:
            await self.discovery.close()
            await self.end_users.close()
            await self.control.close()
            if self.endpoint is not None:
                await asyncio.to_thread(self.endpoint.close)

    def _complete(self, config: Config) -> Config:
        """Return the configuration for the switches: the file's, with the discovered servers and without failed ones."""
        self.checks.follow(with_discovered(config, self.discovery.rosters))
        return self._wanted()

    def _wanted(self) -> Config:
        """Return the effective configuration, with the shares of servers in slow start, and defended."""
        return self.defences.effective(self.slow_start.follow(self.checks.effective, time.monotonic()))

    async def _servers_changed(self) -> None:
        async with self._loading:
            await self.fleet.change(self._complete(self._read))

    async def _grow_shares(self) -> None:
        """Install the steps of slow starts."""
        while True:
            await asyncio.sleep(POLL_INTERVAL)
            if self.slow_start.is_due(time.monotonic()):
                async with self._loading:
                    await self.fleet.change(self._wanted())

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(POLL_INTERVAL)
            await self.control.start(take_over=self.fleet.primary)
            await self._serve_metrics()
            await self.end_users.follow()
            self.discovery.follow(self._read)
            if _stamp(self.file) != self._stamp or _other_stamps(self._read) != self._others:
                with contextlib.suppress(ConfigError):
                    await self.reload()

    async def _serve_metrics(self) -> None:
        """Serve metrics at the configured address, or try again later if it is in use, for example by the primary."""
        wanted = self.fleet.config.metrics
        if self.endpoint is not None and self.endpoint.metrics != wanted:
            await asyncio.to_thread(self.endpoint.close)
            self.endpoint = None
        if self.endpoint is not None or wanted is None:
            return
        try:
            self.endpoint = Endpoint(wanted, self.fleet, asyncio.get_running_loop(), self._other_metrics)
        except OSError as error:
            if self._metrics_error != str(error):
                log.warning("cannot serve metrics at %s: %s", wanted.address, error)
            self._metrics_error = str(error)
        else:
            log.info("serving metrics at http://%s:%d/metrics", *self.endpoint.address)

    def _other_metrics(self) -> Iterable[Metric]:
        yield from self.end_users.metrics()
        yield from speaker_metrics(self.speaker)
        yield from learner_metrics(self.learner)
        yield from self.discovery.metrics()
        yield from self.checks.metrics()
        yield from self.slow_start.metrics()
        yield from self.defences.metrics()

    def _may_check(self) -> bool:
        """Return whether this controller is the primary, or was when the connection to the switch ended."""
        if any(controller.session is not None and controller.health.election_id for controller in self.fleet.controllers.values()):
            self._was_primary = self.fleet.primary
        return self._was_primary

    async def _recover_health(self, session: Session, pipeline: Pipeline, config: Config) -> None:
        """Keep the servers out that an earlier controller found failed. ``config`` is that of the switch."""
        if await session.installed_pipeline() == pipeline.cookie:
            inactive = await read_inactive(session, pipeline.schema, config)
            if self.checks.recover(inactive):
                await self._on_effect()

    async def _on_effect(self) -> None:
        """Install the effect of a change of health, or of the beginning or end of an attack."""
        async with self._loading:
            await self.fleet.change(self._wanted())

    async def _read_syns(self, vips: AbstractSet[str]) -> Mapping[str, int]:
        """Return the SYNs so far of these VIPs; none unless this controller is the primary of all switches."""
        totals: Counter[str] = Counter()
        for controller in self.fleet.controllers.values():
            session, pipeline = controller.session, controller.pipeline
            if session is None or pipeline is None or not controller.primary or controller.health.phase is not Phase.INSTALLED:
                return {}
            try:
                found = await read_syns(session, pipeline.schema, controller.config)
            except (SwitchError, PipelineError) as error:
                log.warning("cannot read counters for the defence against SYN floods: %s", error)
                return {}
            for name in vips & found.keys():
                totals[name] += found[name]["passed"].packets + found[name]["answered"].packets
        return totals

    async def _read_packets(self, config: Config) -> Mapping[str, Packets]:
        """Return the packets of servers for their passive checks; none unless this controller is the primary of all switches."""
        totals: dict[str, Packets] = {}
        for controller in self.fleet.controllers.values():
            session, pipeline = controller.session, controller.pipeline
            if session is None or pipeline is None or not controller.primary or controller.health.phase is not Phase.INSTALLED:
                return {}
            try:
                found = await read_packets(session, pipeline.schema, config)
            except (SwitchError, PipelineError) as error:
                log.warning("cannot read counters for passive checks: %s", error)
                return {}
            for name, packets in found.items():
                before = totals.get(name, Packets(0, 0))
                totals[name] = Packets(before.up + packets.up, before.down + packets.down)
        return totals

    async def reload(self) -> None:
        """Read the file again. Raises ConfigError, and then keeps the installed configuration."""
        async with self._loading:
            stamp = _stamp(self.file)
            try:
                config = await asyncio.to_thread(_load, self.file)
                mapping = await asyncio.to_thread(steering_file.for_config, config)
            except ConfigError as error:
                self._stamp, self.config_error = stamp, str(error)
                log.error("invalid configuration, keeping the previous one:\n%s", error)
                raise
            self._stamp, self.config_error = stamp, None
            before = self._read
            self._read = config
            followed = _other_stamps(config) != self._others or config.mapping != before.mapping
            followed |= config.mapping is not None and config.dedicated_services != before.dedicated_services
            self._others = _other_stamps(config)
            change = self.fleet.mapping.change_to(mapping) if followed else Change()
            if config != before:
                log.info("%s has changed", self.file)
                await self.fleet.change(self._complete(config), change)
            elif change:
                log.info("%s has changed", config.mapping)
                await self.fleet.steer(change)

    async def _handle(self, request: Request) -> Answer:
        try:
            match request.get("command"):
                case "apply":
                    async with asyncio.timeout(APPLY_TIMEOUT):
                        return await self._apply()
                case "status":
                    return {"ok": True, "status": await self._status()}
                case "route":
                    return self._route(request)
                case other:
                    return {"ok": False, "error": f'unknown command "{other}": use apply, status or route'}
        except TimeoutError:
            return {"ok": False, "error": f"not installed after {APPLY_TIMEOUT:g} s: {self._why_not_installed()}"}
        except (ConfigError, ReconcileError, SwitchError, PipelineError) as error:
            return {"ok": False, "error": str(error)}

    def _route(self, request: Request) -> Answer:
        """Explain the routes to an address."""
        try:
            address = ip_address(str(request.get("address")))
        except ValueError:
            return {"ok": False, "error": f"invalid address {request.get('address')}: give an IPv4 or IPv6 address"}
        learned = self.learner.explain(address)
        return {"ok": True, "routes": [route_to(own, address, learned) for own in self.fleet.config.switches]}

    def _why_not_installed(self) -> str:
        """Return the state of the switches that do not have the configuration."""
        parts = []
        for name in self.fleet.missing:
            health = self.fleet.controllers[name].health
            parts.append(f"{name}: the controller is {health.phase}" + (f": {health.error}" if health.error else ""))
        return "; ".join(parts)

    async def _apply(self) -> Answer:
        await self.reload()
        while True:
            if self.fleet.primary or not any(controller.session for controller in self.fleet.controllers.values()):
                await self.fleet.installed()
                return {"ok": True, "role": "primary", "missing": self.fleet.missing}
            # The primary follows the same file; a standby can see when the installation is complete.
            if await self._is_installed_by_primary():
                return {"ok": True, "role": "standby", "missing": []}
            await asyncio.sleep(POLL_INTERVAL)

    async def _is_installed_by_primary(self) -> bool:
        """Return whether all switches have the configuration. Raises SwitchError and ReconcileError."""
        for controller in self.fleet.controllers.values():
            if controller.session is None or controller.pipeline is None:
                return False
            found = await plan(controller.session, controller.pipeline.schema, controller.config, controller.mapping)
            if len(found.difference):
                return False
        return True

    async def _status(self) -> dict[str, Any]:
        status = await fleet_status(self.fleet)
        status["bgp"] = self.speaker.describe()
        status["learned"] = self.learner.describe()
        status["discovery"] = self.discovery.describe()
        self.checks.describe(status)
        self.defences.describe(status)
        status["controller"] |= {"config": str(self.file), "config_error": self.config_error}
        return status


def _load(file: Path) -> Config:
    """Load the configuration. Raises ConfigError, also where it needs libraries that are not installed."""
    config = load(file)
    if config.end_users is not None and (missing := missing_libraries()):
        what = f"the end-user mapping needs Python packages that are not installed: {', '.join(missing)}"
        raise ConfigError(file, [Problem(("end_users",), what, "run `pip install 'frontage[mapping]'`")])
    uses_dns = any(isinstance(vip.discovery, DnsSource) for vip in config.vips)
    if uses_dns and (missing := sources.missing_libraries()):
        what = f"discovery by DNS needs a Python package that is not installed: {', '.join(missing)}"
        raise ConfigError(file, [Problem(("vips",), what, "run `pip install 'frontage[discovery]'`")])
    if absent := checks.missing_libraries(config):
        what = f"health checks need Python packages that are not installed: {', '.join(absent)}"
        raise ConfigError(file, [Problem(("health",), what, "run `pip install 'frontage[health]'`")])
    return config


def _stamp(file: Path) -> tuple[int, int, int] | None:
    """Return a value that changes whenever the file is written or replaced."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _other_stamps(config: Config) -> list[tuple[int, int, int] | None]:
    """Return the stamps of the files that the configuration names: secrets and the mapping."""
    files = [key.secret_file for key in config.keys] + [config.mapping]
    return [_stamp(file) for file in files if file is not None]
