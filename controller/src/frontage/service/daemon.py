# SPDX-License-Identifier: Apache-2.0
"""``frontage up``: controllers that follow a configuration file, and the service that takes commands and exports metrics."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client.core import Metric

from frontage.api.app import Shared
from frontage.api.client import socket_path
from frontage.bgp.learner import Learner
from frontage.bgp.metrics import learner_metrics, speaker_metrics
from frontage.bgp.speaker import Speaker
from frontage.changes.history import JournalError
from frontage.checks import service as checks
from frontage.checks.passive import Packets, read_packets
from frontage.checks.recovery import read_inactive
from frontage.checks.service import HealthChecks
from frontage.config import Config, ConfigError, load, loads
from frontage.config.discovery import DnsSource
from frontage.config.document import Problem
from frontage.config.real_servers import balancers
from frontage.discovery import sources
from frontage.discovery.service import Discovery, with_discovered
from frontage.fields import IPAddress
from frontage.mapping.service import MappingService, missing_libraries
from frontage.observe import causes, tracing
from frontage.p4.entries import Difference
from frontage.p4.errors import SwitchError
from frontage.p4.p4info import Pipeline, PipelineError
from frontage.p4.session import Session
from frontage.samples.metrics import metrics as sample_metrics
from frontage.service.certificates import certificate_metrics, describe_certificates, refresh_certificates
from frontage.service.changes import INSTALLED, Changes, NotInstalledError
from frontage.service.control import ControlSocket, TcpApi
from frontage.service.fleet import Fleet
from frontage.service.health import Phase
from frontage.service.key_holders import KeyHolders, key_servers
from frontage.service.live import Live
from frontage.service.metrics import FrontageCollector
from frontage.service.metrics_endpoint import Endpoint
from frontage.service.probe import Segment
from frontage.service.route import route_to
from frontage.service.status import fleet_status, read_syns
from frontage.service.syn_defence import SynDefences
from frontage.stamps import Stamp, stamp
from frontage.state import steering_file
from frontage.state.errors import ReconcileError
from frontage.state.reconcile import plan
from frontage.state.slow_start import SlowStart
from frontage.state.steering import Change, EndUserMapping
from frontage.store.errors import StoreError
from frontage.tls import TlsError

if TYPE_CHECKING:
    from frontage.api.forward import Forwarder
    from frontage.service.cluster import Cluster
    from frontage_records.placement.service import PlacementService

log = logging.getLogger(__name__)

POLL_INTERVAL = 0.25
"""Seconds between checks of the file. A watch would be lost when an editor or command replaces the file."""

SETTLE_TIMEOUT = 10.0
"""Seconds that a new leader waits for switches before it completes a rollout without them."""
APPLY_TIMEOUT = 60.0
"""Seconds that a command waits for the installation of its change."""


@dataclass(frozen=True, slots=True)
class _Left:
    """A rollout that another leader began."""

    before: Config
    """The configuration that all switches had before it."""


class Service:
    """The controllers of the switches, and their services, for one configuration file."""

    def __init__(self, file: Path, *, election_id: int | None = None, name: str = "frontage"):
        """Load the configuration. ``name`` distinguishes controllers that share a store. Raises ConfigError."""
        self.file = file
        self.config_error: str | None = None
        self._stamp = stamp(file)
        config = _load(file)
        self.cluster = self._join(config, name, election_id)
        """The controllers that share a store with this one; None without a shared store."""
        self.discovery = Discovery(file, self._servers_changed)
        self.checks = HealthChecks(with_discovered(config, self.discovery.rosters))
        self.slow_start = SlowStart(self.checks.effective)
        self.defences = SynDefences()
        self.fleet = Fleet(
            self.defences.effective(self.checks.effective),
            election_id=election_id,
            mapping=steering_file.for_config(config),
            before_install=self._recover_health,
            election=self.cluster,
        )
        self._left: _Left | None = None
        """The unfinished rollout of a previous leader, until its first round is installed."""
        self._unfinished: list[int] = []
        """The numbers of the previous leader's changes without a result."""
        self._read = config
        """The content of the file when it was last valid."""
        self._others = _other_stamps(config)
        self.changes = Changes(file, self._install, None if self.cluster is None else self.cluster.store)
        self.key_holders = KeyHolders(lambda: self.fleet.controllers, self._servers_with_certificates, self._real_servers_of)
        self.live = Live(self.fleet, lambda: self.config, lambda: self.checks.states())
        shared = Shared(self)
        if self.cluster is not None:
            self.cluster.serve(shared)
            self.fleet.before_last_round = self._keep_progress
        self.events = shared.events
        self.control = ControlSocket(socket_path(config, file), shared)
        self.api = TcpApi(shared)
        self.end_users = MappingService(self.fleet)
        self.record_placement = _record_placement(self._may_check)
        self.speaker = Speaker(self.fleet)
        self.learner = Learner(self.fleet, lambda: self.speaker.sessions)
        self._was_primary = False
        self.endpoint: Endpoint | None = None
        self._metrics_error: str | None = None
        self._loading = asyncio.Lock()

    async def run(self) -> None:
        """Run until cancelled. Raises ListenError if the control socket is unavailable at the start."""
        await self.control.start(take_over=False)
        await self._serve_metrics()
        await self.api.follow(self._read.api)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.fleet.run())
                tasks.create_task(self.speaker.run())
                tasks.create_task(self.learner.run())
                tasks.create_task(self._watch())
                tasks.create_task(self._note_edit() if self.cluster is None else self.cluster.run())
                tasks.create_task(self.events.watch())
                tasks.create_task(self._grow_shares())
                tasks.create_task(self.checks.run(self._on_effect, self._may_check))
                tasks.create_task(self.checks.watch(self._read_packets, self._on_effect))
                tasks.create_task(self.defences.run(self._read_syns, self._on_effect))
        finally:
            await self.discovery.close()
            await self.end_users.close()
            if self.record_placement is not None:
                await self.record_placement.close()
            await self.control.close()
            await self.api.close()
            if self.endpoint is not None:
                await asyncio.to_thread(self.endpoint.close)

    def _complete(self, config: Config) -> Config:
        """Return the configuration for the switches: the file's, with the discovered servers and without failed ones."""
        self.checks.follow(with_discovered(config, self.discovery.rosters))
        return self._wanted()

    def _wanted(self) -> Config:
        """Return the effective configuration, with the shares of servers in slow start, and defended."""
        return self.defences.effective(self.slow_start.follow(self.checks.effective, time.monotonic()))

    def _servers_with_certificates(self) -> frozenset[str]:
        return self.api.servers & key_servers(self.config)

    def _real_servers_of(self, name: str) -> frozenset[str]:
        found = balancers(self.config.real_servers, self.config.servers)
        return frozenset(real.name for real, behind in found if any(server.name == name for server in behind))

    async def _servers_changed(self) -> None:
        async with self._loading:
            await self.fleet.change(self._complete(self._read))
        await self._keep_allocations()

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
            await self.api.follow(self._read.api)
            await self.end_users.follow()
            if self.record_placement is not None:
                await self.record_placement.follow(self._read)
            if self.cluster is None or self.cluster.is_leading:
                self.discovery.follow(self._read)
            await asyncio.to_thread(refresh_certificates, self.fleet.controllers)
            is_edited = stamp(self.file) != self._stamp
            if is_edited and self.cluster is not None:
                await self.cluster.restore()
            elif (is_edited and not self.changes.are_pending) or _other_stamps(self._read) != self._others:
                # A command changes the file, too, and may have to wait until this reload is complete.
                with contextlib.suppress(ConfigError), causes.caused_by(self._cause_of_edit()):
                    await self.reload()
                    await self._note_edit()

    def _cause_of_edit(self) -> causes.Cause:
        """Return the cause of the current change to the file: a request, or a new cause for a text editor."""
        return self.changes.cause or causes.new()

    async def _serve_metrics(self) -> None:
        """Serve metrics at the configured address, or try again later if it is in use, for example by the primary."""
        wanted = self.fleet.config.metrics
        if self.endpoint is not None and self.endpoint.metrics != wanted:
            await asyncio.to_thread(self.endpoint.close)
            self.endpoint = None
        if self.endpoint is not None and self.endpoint.certificates is not None:
            await asyncio.to_thread(self.endpoint.certificates.refresh)
        if self.endpoint is not None or wanted is None:
            return
        try:
            self.endpoint = Endpoint(wanted, FrontageCollector(self.fleet, asyncio.get_running_loop(), self._other_metrics))
        except (OSError, TlsError) as error:
            if self._metrics_error != str(error):
                log.warning("cannot serve metrics at %s: %s", wanted.address, error)
            self._metrics_error = str(error)
        else:
            log.info("serving metrics at %s", self.endpoint.url)

    def _other_metrics(self) -> Iterable[Metric]:
        yield from self.end_users.metrics()
        if self.record_placement is not None:
            yield from self.record_placement.metrics()
        yield from speaker_metrics(self.speaker)
        yield from learner_metrics(self.learner)
        yield from self.discovery.metrics()
        yield from self.checks.metrics()
        yield from self.slow_start.metrics()
        yield from self.defences.metrics()
        if self.cluster is not None:
            yield from self.cluster.metrics()
        yield from self.key_holders.metrics()
        yield from certificate_metrics(self._certificates())
        yield from sample_metrics({name: controller.samples for name, controller in self.fleet.controllers.items()})

    def _certificates(self) -> list[dict[str, Any]]:
        return describe_certificates(self.fleet.controllers, self.api, self.endpoint)

    def _may_check(self) -> bool:
        """Return whether this controller is the primary, or was when the connection to the switch ended."""
        if self.cluster is not None:
            return self.cluster.is_leading
        if any(controller.session is not None and controller.health.election_id for controller in self.fleet.controllers.values()):
            self._was_primary = self.fleet.primary
        return self._was_primary

    async def _recover_health(self, session: Session, pipeline: Pipeline, config: Config) -> None:
        """Keep the servers out that an earlier controller found failed. ``config`` is that of the switch."""
        if await session.installed_pipeline() == pipeline.cookie:
            inactive = await read_inactive(session, pipeline.schema, config)
            if self.checks.recover(inactive):
                await (self._on_effect() if self._left is None else self._prepare(self._left))

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
                found = await read_syns(session, pipeline.schema, controller.config, controller.vip_ids)
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
                totals[name] = totals.get(name, Packets()).plus(packets)
        return totals

    async def reload(self) -> None:
        """Read the file again. Raises ConfigError, and then keeps the installed configuration."""
        async with self._loading:
            read = stamp(self.file)
            try:
                config = await asyncio.to_thread(_load, self.file)
                mapping = await asyncio.to_thread(steering_file.for_config, config)
            except ConfigError as error:
                self._stamp, self.config_error = read, str(error)
                log.error("invalid configuration, keeping the previous one:\n%s", error)
                raise
            self._stamp, self.config_error = read, None
            before = self._read
            change = self._mapping_change(config, mapping)
            self._read = config
            self._others = _other_stamps(config)
            if config != before:
                log.info("%s has changed", self.file)
                await self.fleet.change(self._complete(config), change)
            elif change:
                log.info("%s has changed", config.mapping)
                await self.fleet.steer(change)

    def _mapping_change(self, config: Config, mapping: EndUserMapping) -> Change:
        """Return the change of the end-user mapping by ``config``, whose mapping file contains ``mapping``."""
        followed = _other_stamps(config) != self._others or config.mapping != self._read.mapping
        followed |= config.mapping is not None and config.dedicated_services != self._read.dedicated_services
        return self.fleet.mapping.change_to(mapping) if followed else Change()

    def _join(self, config: Config, name: str, election_id: int | None) -> Cluster | None:
        """Return this controller as a member of the configured cluster."""
        if config.store is None:
            return None
        from frontage.service.cluster import Cluster

        return Cluster(self.file, config.store.nats, name, self, (election_id or config.device.election_id) + 1)

    @property
    def forwarder(self) -> Forwarder | None:
        """Forwards requests to the leader; None for a single controller."""
        return self.cluster

    async def follow_election(self) -> None:
        """Offer this controller's current election id to the switches."""
        await self.fleet.follow_election()

    async def adopt_allocations(self, allocations: Mapping[str, Any]) -> None:
        """Adopt the discovered servers of the leader, with their SIDs."""
        self.discovery.adopt(allocations)
        async with self._loading:
            await self.fleet.change(self._complete(self._read))

    def held_keys(self) -> dict[str, int]:
        """Return the newest cookie key that each server has acknowledged."""
        return self.key_holders.held

    async def before_lead(self) -> None:
        """Prepare to continue the previous leader's rollout: begin with its first round."""
        assert self.cluster is not None
        if self.changes.journal.last() is None:
            # The first leader stores its configuration.
            await asyncio.to_thread(self.cluster.store.keep_secrets, self._read)
            await asyncio.to_thread(self.changes.note)
        self._unfinished = [entry.number for entry in self.changes.journal.history().unfinished()]
        self.discovery.adopt(await self.cluster.allocations())
        self.key_holders.adopt(await self.cluster.held_keys())
        self._left = await self._find_left(self.cluster)
        if self._left is not None:
            await self._prepare(self._left)

    async def settle(self) -> None:
        """Wait until the switches have their first state."""
        await self.fleet.settled(SETTLE_TIMEOUT)

    async def after_lead(self) -> None:
        """Complete the previous leader's changes without a result."""
        numbers, self._unfinished, self._left = self._unfinished, [], None
        try:
            async with self._loading:
                await self.fleet.change(self._complete(self._read))
            result, missing = INSTALLED, await self.changes.installed() if numbers else None
        except NotInstalledError as error:
            result, missing = f"not installed: {error}", None
        try:
            await asyncio.to_thread(self.changes.finish, [(number, result, tuple(missing or ())) for number in numbers])
        except JournalError as error:
            log.error("%s", error)

    async def _find_left(self, cluster: Cluster) -> _Left | None:
        """Return the previous leader's unfinished rollout; None without one, or in its last round."""
        history = self.changes.journal.history()
        unfinished = history.unfinished()
        if not unfinished:
            return None
        reached = history.find(await cluster.progress())
        base = unfinished[0].before if reached is None or reached.number < unfinished[0].number else reached.after
        made = history.made()
        if base is None or made is None or base == made.after:
            return None
        try:
            return _Left(loads(await cluster.store.journal.fetch(base), self.file))
        except (ConfigError, JournalError) as error:
            log.warning("cannot continue the rollout where it was interrupted: %s", error)
            return None

    async def _prepare(self, left: _Left) -> None:
        before = self.checks.preview(with_discovered(left.before, self.discovery.rosters))
        async with self._loading:
            await self.fleet.prepare(before, self._complete(self._read))

    async def _keep_progress(self) -> None:
        """Store that a rollout enters its last round, so that another leader does not restart it."""
        assert self.cluster is not None
        try:
            await self.cluster.keep_progress()
        except StoreError as error:
            raise ReconcileError(str(error)) from None

    async def _keep_allocations(self) -> None:
        """Store the SIDs of discovered servers for the next leader."""
        if self.cluster is not None:
            try:
                await self.cluster.keep_allocations(self.discovery.allocations())
            except StoreError as error:
                log.error("the next leader may not know the SIDs of discovered servers: %s", error)

    async def _note_edit(self) -> None:
        """Record a change that was made in a text editor, and its result."""
        try:
            number = await asyncio.to_thread(self.changes.note)
            if number is None:
                return
            try:
                result, missing = INSTALLED, await self.changes.installed()
            except NotInstalledError as error:
                result, missing = f"not installed: {error}", None
            await asyncio.to_thread(self.changes.finish, [(number, result, tuple(missing or ()))])
        except JournalError as error:
            log.error("%s", error)

    # The interface of the API (`frontage.api.backend.Backend`).

    @property
    def config(self) -> Config:
        """The last valid configuration of the file, with discovered servers."""
        return self.checks.config

    def routes(self, address: IPAddress) -> list[dict[str, Any]]:
        """Return the route of each switch to an address."""
        learned = self.learner.explain(address)
        return [route_to(own, address, learned) for own in self.fleet.config.switches]

    async def sample(self) -> dict[str, Any]:
        """Return the totals of each VIP, and the state of the switches."""
        return {**await self.live.sample(), "config_error": self.config_error}

    async def sample_servers(self, vip: str) -> dict[str, Any]:
        """Return a sample of the servers of a VIP."""
        return await self.live.sample_servers(vip)

    async def capture(
        self, device: str, fields: Mapping[str, int], seconds: float, segment: Segment | None
    ) -> list[dict[str, Any]]:
        """Return the trace of one packet through a switch. Raises ProbeError and SwitchError."""
        return await self.live.capture(device, fields, seconds, segment)

    async def sites(self) -> dict[str, Any]:
        """Return the sites, the end-user mapping, and the placement of services."""
        return {**self.live.sites(self.end_users.sites_out), "placement": await self.end_users.placement()}

    async def _install(self) -> list[str] | None:
        """Install the current file, and return the switches that were unreachable. Raises NotInstalledError."""
        try:
            async with asyncio.timeout(APPLY_TIMEOUT):
                with tracing.span("installation"):
                    return await self._reload_and_wait()
        except TimeoutError:
            raise NotInstalledError(f"not installed after {APPLY_TIMEOUT:g} s: {self._why_not_installed()}") from None
        except (ConfigError, ReconcileError, SwitchError, PipelineError) as error:
            raise NotInstalledError(str(error)) from None

    async def preview(self, config: Config) -> Mapping[str, Difference]:
        """Return the writes that ``config`` would cause, by name of the switch. Unreadable switches are left out.

        Raises SwitchError, ReconcileError and ConfigError.
        """
        mapping = copy.deepcopy(self.fleet.mapping)
        mapping.apply(self._mapping_change(config, await asyncio.to_thread(steering_file.for_config, config)))
        found = self.checks.preview(with_discovered(config, self.discovery.rosters))
        found = copy.copy(self.slow_start).follow(found, time.monotonic())
        found = copy.copy(self.defences).effective(found)
        result = {}
        for own in self.fleet.preview(found):
            controller = self.fleet.controllers.get(own.device.name)
            if controller is None or controller.session is None or controller.pipeline is None:
                continue
            with tracing.span("preview", device=own.device.name):
                todo = await plan(controller.session, controller.pipeline.schema, own, mapping, controller.known_neighbors)
            result[own.device.name] = todo.difference
        return result

    def objects(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the objects whose changes are events, by kind and name."""
        found: dict[tuple[str, str], dict[str, Any]] = {
            ("configuration", self.file.name): {"error": self.config_error, "stamp": self._stamp and self._stamp[1]}
        }
        for name, controller in self.fleet.controllers.items():
            health = controller.health
            role = "primary" if controller.primary else "standby"
            found["switch", name] = {"phase": str(health.phase), "role": role, "error": health.error}
        for name, health_of in self.checks.states().items():
            found["server", name] = {"health": health_of}
        return found

    def _why_not_installed(self) -> str:
        """Return the state of the switches that do not have the configuration."""
        parts = []
        for name in self.fleet.missing:
            health = self.fleet.controllers[name].health
            parts.append(f"{name}: the controller is {health.phase}" + (f": {health.error}" if health.error else ""))
        return "; ".join(parts)

    async def _reload_and_wait(self) -> list[str]:
        await self.reload()
        while True:
            if (
                self.cluster is not None
                or self.fleet.primary
                or not any(controller.session for controller in self.fleet.controllers.values())
            ):
                await self.fleet.installed()
                return self.fleet.missing
            # The primary follows the same file; a standby can see when the installation is complete.
            if await self._is_installed_by_primary():
                return []
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

    async def status(self) -> dict[str, Any]:
        """Return the status of the fleet and its services."""
        status = await fleet_status(self.fleet)
        status["bgp"] = self.speaker.describe()
        status["learned"] = self.learner.describe()
        status["discovery"] = self.discovery.describe()
        self.checks.describe(status)
        self.defences.describe(status)
        api = self.api.address
        status["controller"] |= {"config": str(self.file), "config_error": self.config_error}
        if self.cluster is not None:
            status["store"] = self.cluster.describe()
        status["api"] = {"address": None if api is None else f"{api[0]}:{api[1]}", "error": self.api.error}
        status["certificates"] = self._certificates()
        return status


def _record_placement(is_leading: Callable[[], bool]) -> PlacementService | None:
    """Return the placer of records; None if the package ``frontage-records`` is not installed."""
    if find_spec("frontage_records") is None:
        return None
    from frontage_records.placement.service import PlacementService

    return PlacementService(is_leading)


def _load(file: Path) -> Config:
    """Load the configuration. Raises ConfigError, also where it needs libraries that are not installed."""
    config = load(file)
    if config.end_users is not None and (missing := missing_libraries()):
        what = f"the end-user mapping needs Python packages that are not installed: {', '.join(missing)}"
        raise ConfigError(file, [Problem(("end_users",), what, "run `pip install 'frontage[mapping]'`")])
    if config.store is not None and find_spec("nats") is None:
        what = "the store needs a Python package that is not installed: nats-py"
        raise ConfigError(file, [Problem(("store",), what, "run `pip install 'frontage[cluster]'`")])
    uses_dns = any(isinstance(vip.discovery, DnsSource) for vip in config.vips)
    if uses_dns and (missing := sources.missing_libraries()):
        what = f"discovery by DNS needs a Python package that is not installed: {', '.join(missing)}"
        raise ConfigError(file, [Problem(("vips",), what, "run `pip install 'frontage[discovery]'`")])
    if absent := checks.missing_libraries(config):
        what = f"health checks need Python packages that are not installed: {', '.join(absent)}"
        raise ConfigError(file, [Problem(("health",), what, "run `pip install 'frontage[health]'`")])
    return config


def _other_stamps(config: Config) -> list[Stamp | None]:
    """Return the stamps of the files that the configuration names: secrets and the mapping."""
    files = [key.secret_file for key in config.keys] + [config.mapping]
    return [stamp(file) for file in files if file is not None]
