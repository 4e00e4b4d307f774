# SPDX-License-Identifier: Apache-2.0
"""The running controller: keeps a switch in the state that a configuration requires.

    config = load("frontage.yaml")
    controller = Controller(config)
    task = asyncio.create_task(controller.run())
    await controller.installed()

A controller without the highest election id is a standby: it stays connected and takes over when the primary's connection
ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from frontage.config import Config
from frontage.config.devices import Device
from frontage.cookie import CookieKey
from frontage.learned import NOTHING, Learned, NextHops
from frontage.neighbors.resolver import Resolver
from frontage.observe import tracing
from frontage.observe.causes import Pending
from frontage.observe.logs import fields, with_fields
from frontage.p4.credentials import Credentials, credentials_of
from frontage.p4.entries import State
from frontage.p4.errors import (
    ElectionIdInUseError,
    NotLeadingError,
    SwitchError,
    TlsFailedError,
    UnreachableError,
    WriteRefusedError,
)
from frontage.p4.p4info import Pipeline, PipelineError, Schema
from frontage.p4.session import Role, Session
from frontage.samples.exporter import Exporter
from frontage.service.health import Health, Phase
from frontage.state.activation import is_activation
from frontage.state.errors import ReconcileError
from frontage.state.reconcile import Outcome, Plan, Written, activate, install, plan, push, push_network
from frontage.state.recovery import UNKNOWN, Known
from frontage.state.steering import Change, EndUserMapping, MappingEntries

log = logging.getLogger(__name__)

MIN_BACKOFF = 0.1
MAX_BACKOFF = 5.0
"""Seconds between attempts, doubling from the minimum to the maximum."""

PROBE_INTERVAL = 5.0
PROBE_TIMEOUT = 5.0
"""Seconds between probes of the switch and its program, and seconds to wait for the response.

HTTP/2 keepalive cannot replace probes: servers of the gRPC library end connections that use it this often."""

AUDIT_INTERVAL = 60.0
"""Seconds between full reconciliations without a change."""

CONNECT_TIMEOUT = 5.0


class Election(Protocol):
    """Decides which of several controllers is the leader. Without it, the largest election id decides."""

    @property
    def term(self) -> int | None:
        """The election id while this process may write; None otherwise."""
        ...

    def exceed(self, term: int) -> None:
        """Use a larger election id, because a switch has already seen this one."""
        ...


@dataclass(frozen=True, slots=True)
class Installation:
    """The last write of a controller, which spares it from reading the switch for the next change."""

    written: Written
    mapped: MappingEntries
    neighbors: int
    """The version of the neighbors (`Resolver.version`)."""
    learned: Learned
    state: State | None = None
    """Every entry; None if a change has been written without computing the whole state."""


class Controller:
    """Controls one switch. `apply` changes the configuration, `steer` changes the end-user mapping; `run` does the work."""

    def __init__(
        self,
        config: Config,
        *,
        election_id: int | None = None,
        mapping: EndUserMapping | None = None,
        election: Election | None = None,
    ):
        self.config = config
        self._election = election
        self.mapping = mapping or EndUserMapping()
        self._changes: list[Change] = []
        """Changes of the mapping that are not yet written."""
        self.neighbors = Resolver(config)
        self.samples = Exporter(config)
        self.learned = UNKNOWN if config.learned_from else NOTHING
        """The learned routes that the switch has, or gets."""
        self.groups: Mapping[NextHops, int] = {}
        """The numbers of the groups of next hops that the switch has."""
        self.vip_ids: Mapping[str, int] | None = None
        """The ids of the VIPs in the switch, by name; None while they are unknown, for example on a standby."""
        self._installation: Installation | None = None
        """The last complete write over this connection, if nothing else can have been written since."""
        self.health = Health()
        self.pipeline: Pipeline | None = None
        self.session: Session | None = None
        """The current connection, which can read in every role."""
        self.credentials: Credentials | None = None
        """The certificates for the switch; None without TLS."""
        self.before_install: Callable[[Session, Pipeline, Config], Awaitable[None]] | None = None
        """Called on each new connection before this controller writes, with the configuration. May change the configuration."""
        self._election_id = election_id or config.device.election_id
        self._role = Role.BACKUP
        self._has_role = False
        """True after the switch has responded to the arbitration."""
        self._resync = True
        self._resolves = False
        """Whether everything has been installed over this connection, so that answers of neighbors arrive."""
        self._audit = False
        self._wake = asyncio.Event()
        self._causes = Pending()
        """The causes of changes that are not yet installed."""
        # Changes are numbered, so that a waiter knows whether its change has been processed.
        self._wanted = 1
        self._done = 0
        self._failed = 0
        self._failure = ""
        """The reason why the last change could not be installed."""
        self._condition = asyncio.Condition()

    async def run(self) -> None:
        """Connect, install, watch and reconnect until cancelled."""
        backoff = MIN_BACKOFF
        while True:
            started = time.monotonic()
            try:
                await self._run_session()
            except ElectionIdInUseError as error:
                log.info("%s", error)
                if self._election is not None:
                    # The switch has not yet detected the end of an earlier connection.
                    self._election.exceed(self._election.term or 0)
                else:
                    # Another controller has this election id: become its standby.
                    self._election_id = max(1, self._election_id - 1)
                await self._report(Phase.CONNECTING, str(error))
            except UnreachableError as error:
                why = str(error) if isinstance(error, TlsFailedError) else await self._explain(error)
                log.warning("%s", why)
                await self._report(Phase.CONNECTING, why)
            except (SwitchError, PipelineError) as error:
                log.error("%s", error)
                await self._fail(self._wanted, str(error))
            if time.monotonic() - started > MAX_BACKOFF:
                backoff = MIN_BACKOFF
            await asyncio.sleep(backoff)
            backoff = min(2 * backoff, MAX_BACKOFF)

    async def _explain(self, error: UnreachableError) -> str:
        """Return why a connection ended. gRPC does not report that a switch has rejected a certificate after the handshake."""
        why = None if self.credentials is None else await self.credentials.explain(self.config.device.address)
        return why or str(error)

    async def change(self, config: Config, mapping: Change | None = None) -> None:
        """Replace the configuration and change the end-user mapping with it, without waiting for the installation."""
        async with self._condition:
            self.config = config
            self.neighbors.follow(config)
            self.samples.follow(config)
            if mapping is not None:
                self.mapping.apply(mapping)
            self._wanted += 1
            self._causes.add()
        self._wake.set()

    async def steer(self, change: Change) -> None:
        """Change the end-user mapping without waiting for the installation, for which `installed` waits.

        Only the difference is written, and nothing is read. Raises MappingError, and then changes nothing.
        """
        async with self._condition:
            MappingEntries(self.config, EndUserMapping()).check(change)
            self.mapping.apply(change)
            self._changes.append(change)
            self._wanted += 1
            self._causes.add()
        self._wake.set()

    async def learn(self, learned: Learned) -> None:
        """Replace the learned routes without waiting for the installation, for which `installed` waits."""
        async with self._condition:
            self.learned = learned
            self._wanted += 1
        self._wake.set()

    async def installed(self) -> None:
        """Wait until the current configuration is installed. Raises ReconcileError if the installation fails.

        This also waits while there is no connection, or while another controller is primary.
        """
        wanted = self._wanted
        async with self._condition:
            await self._condition.wait_for(
                lambda: self._failed >= wanted or (self._done >= wanted and self.health.phase is Phase.INSTALLED)
            )
            if self.health.phase is not Phase.INSTALLED:
                raise ReconcileError(self._failure)

    async def apply(self, config: Config) -> None:
        """Replace the configuration and wait for its installation."""
        await self.change(config)
        await self.installed()

    @property
    def version(self) -> int:
        """Increases with each change of the configuration, of the mapping, or of the learned routes."""
        return self._wanted

    @property
    def installed_keys(self) -> tuple[CookieKey, ...] | None:
        """The cookie keys in the switch; None while they are unknown, for example on a standby."""
        return None if self._installation is None else self._installation.written.config.cookie_keys

    @property
    def primary(self) -> bool:
        return self.session is not None and self._role is Role.PRIMARY and self.session.may_write()

    async def follow_election(self) -> None:
        """Offer this controller's current election id to the switch. Only with an `Election`."""
        session = self.session
        if session is None:
            return
        self._role, self._resync, self._resolves = Role.BACKUP, True, False
        self._installation = None
        with contextlib.suppress(SwitchError):  # `run` detects the end of the connection
            await session.arbitrate(self._offered)
        self._wake.set()

    @property
    def _offered(self) -> int | None:
        """The election id to offer; None if this controller is not the leader."""
        return self._election_id if self._election is None else self._election.term

    @property
    def known_neighbors(self) -> Known:
        """The Ethernet addresses of neighbors and the learned routes, as `plan` needs them.

        Before the first installation over a connection, those that the switch has are newer: another controller may have been primary.
        """
        known = self.neighbors.known
        if self._resolves:
            return Known(current=known, learned=self.learned, groups=self.groups)
        return Known(old=known, learned=self.learned, groups=self.groups)

    async def _run_session(self) -> None:
        """Run one connection from beginning to end."""
        if self.health.phase is Phase.INSTALLED:
            await self._report(Phase.CONNECTING)  # the last connection ended because `device` changed
        device = self.config.device
        # Load the program every time: it may have been compiled again.
        self.pipeline = pipeline = await asyncio.to_thread(Pipeline.load, device.pipeline.p4info, device.pipeline.json_file)
        if device.tls != (self.credentials and self.credentials.settings):
            self.credentials = credentials_of(device)
        async with Session(device.address, device.device_id, self.credentials) as session:
            await session.connect(CONNECT_TIMEOUT)
            self._role, self._resync, self._resolves = Role.BACKUP, True, False
            self._installation = self.vip_ids = None
            self._has_role = False
            self.health.election_id = 0
            self.health.connections += 1
            self.samples.connect(pipeline.schema, lambda: self.vip_ids)
            session.on_packet = self.samples.on_packet
            if (election := self._election) is not None:
                session.may_write = lambda: session.election_id != 0 and session.election_id == election.term
            await session.arbitrate(offered := self._offered)
            self.session = session
            if self._offered != offered:
                await self.follow_election()
            listen = asyncio.create_task(self._listen(session))
            work = asyncio.create_task(self._work(session, pipeline, device))
            resolve = asyncio.create_task(
                self.neighbors.run(session, pipeline.schema, lambda: self._resolves and self.primary, self._wake.set)
            )
            export = asyncio.create_task(self.samples.run())
            tasks = (listen, work, resolve, export)
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                self.session = None
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            # Prefer the error of the stream: it tells why the connection ended, better than a failed request does.
            for task in sorted(done, key=lambda task: task is not listen):
                task.result()

    async def _listen(self, session: Session) -> None:
        """Process role changes."""
        async for arbitration in session.arbitrations():
            log.info("device %d: role %s, election id %d", session.device_id, arbitration.role.value, session.election_id)
            self._role, self._has_role = arbitration.role, True
            self._installation = self.vip_ids = None
            if arbitration.role is not Role.PRIMARY:
                self._resolves = False
            self.health.election_id = session.election_id
            if self._election is not None:
                if arbitration.role is not Role.PRIMARY and session.election_id and arbitration.election_id >= session.election_id:
                    self._election.exceed(arbitration.election_id)
            elif arbitration.role is Role.NO_PRIMARY:
                # The next primary needs an election id above all earlier ones (P4Runtime, section 5.3).
                self._election_id = max(arbitration.election_id, self._election_id) + 1
                await session.arbitrate(self._election_id)
            self._wake.set()

    async def _work(self, session: Session, pipeline: Pipeline, device: Device) -> None:
        """Install on every change, and return when the configuration names another device."""
        retry = MIN_BACKOFF
        audited = time.monotonic()
        while self.config.device == device:
            delay = PROBE_INTERVAL
            if self.primary:
                if self._resync and self.before_install is not None:
                    await self.before_install(session, pipeline, self.config)
                wanted = self._wanted
                try:
                    await self._install_for_causes(session, pipeline, wanted, device.name)
                    retry = MIN_BACKOFF
                except NotLeadingError as error:
                    log.info("%s", error)
                    await self._report(Phase.STANDBY)
                except (ReconcileError, WriteRefusedError) as error:
                    await self._fail(wanted, str(error))
                    delay, retry = retry, min(2 * retry, AUDIT_INTERVAL)
            elif self._has_role:
                await self._report(Phase.STANDBY)
            while not await self._woken(delay):
                delay = PROBE_INTERVAL
                # This detects a switch that disappeared without closing the connection, or that runs another program.
                cookie = await session.installed_pipeline(PROBE_TIMEOUT)
                if self.primary and (cookie != pipeline.cookie or self.health.phase is Phase.FAILED):
                    break
                if time.monotonic() - audited > AUDIT_INTERVAL:
                    self._audit = True
                if self._audit:
                    break
            audited = time.monotonic() if self._audit else audited

    async def _woken(self, seconds: float) -> bool:
        """Wait for a change and return True, or return False after ``seconds``."""
        try:
            # Not wait_for: before Python 3.12 it loses a cancellation that arrives together with the event.
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return False
        self._wake.clear()
        return True

    async def _install_for_causes(self, session: Session, pipeline: Pipeline, wanted: int, device: str) -> None:
        """Install in the context of the waiting requests."""
        with (
            with_fields(device=device),
            self._causes.resumed() as cause,
            tracing.span("reconciliation", device=device, request_id=cause.request_id),
        ):
            try:
                await self._install(session, pipeline, wanted)
            except (ReconcileError, WriteRefusedError) as error:
                log.error("%s", error)
                raise

    async def _install(self, session: Session, pipeline: Pipeline, wanted: int) -> None:
        """Write pending changes of servers' states, of the mapping or of neighbors only, or reconcile if anything else changed."""
        if self.health.phase is not Phase.INSTALLED:
            await self._report(Phase.INSTALLING)
        config, (changes, self._changes) = self.config, (self._changes, [])
        # Unknown until the write is complete.
        before, self._installation = self._installation, None
        after = None
        if before is not None and not self._resync:
            after = await self._write_changes(session, pipeline.schema, before, config, changes)
        self._installation = after or await self._reconcile(session, pipeline, before, config)
        if self._installation is not None:
            self.groups = self._installation.written.allocation.groups
            self.vip_ids = self._installation.written.allocation.vip_ids
        await self._complete(wanted)

    async def _write_changes(
        self, session: Session, schema: Schema, before: Installation, config: Config, changes: Sequence[Change]
    ) -> Installation | None:
        """Write a change without reading. Return None if that is impossible, or if nothing has changed."""
        mapped, neighbors, learned = before.mapped, self.neighbors.version, self.learned
        has_neighbors = before.neighbors == neighbors and before.learned is learned
        if before.written.config is not config:
            if not is_activation(before.written.config, config):
                return None
            outcome = await activate(session, schema, before.written, config, mapped, before.state)
            assert outcome.written is not None
            self._count(outcome)
            before = Installation(outcome.written, mapped, before.neighbors, before.learned, outcome.state)
        elif has_neighbors and not changes:
            return None
        if not has_neighbors:
            if changes or before.state is None:
                return None
            outcome = await push_network(session, schema, before.written, self.known_neighbors, before.state, mapped)
            assert outcome.written is not None
            self._count(outcome)
            return Installation(outcome.written, mapped, neighbors, learned, outcome.state)
        for change in changes:
            entries = self.health.last.entries if self.health.last else 0
            self._count(await push(session, schema, config, mapped, mapped.change(change), entries))
            before = Installation(before.written, mapped, neighbors, learned)
        return before

    async def _reconcile(
        self, session: Session, pipeline: Pipeline, before: Installation | None, config: Config
    ) -> Installation | None:
        """Read the switch and write the difference. Return ``before`` if a change interrupts an audit."""
        if await session.installed_pipeline() != pipeline.cookie:
            log.info("installing the pipeline")
            await session.set_pipeline(pipeline)
            self.health.pipelines_set += 1
            self._resync = True
        started = time.monotonic()
        version, neighbors = self.neighbors.version, self.known_neighbors
        is_unchanged = before is not None and before.written.config is config and before.neighbors == version
        is_unchanged = is_unchanged and before is not None and before.learned is neighbors.learned
        todo = await self._plan(session, pipeline, config, neighbors, interruptible=is_unchanged and not self._resync)
        if todo is None:
            return before
        # Leaf operations are not acknowledged: an audit sends them again.
        resync = self._resync or self._audit
        outcome = await install(session, pipeline.schema, config, self.mapping, todo, started, resync=resync)
        if self._resync:
            await session.enable_digests(pipeline.schema)
        if config is self.neighbors.config:
            self.neighbors.adopt(outcome.recovered, replace=not self._resolves)
        self._resync = self._audit = False
        self._resolves = True
        self._count(outcome)
        assert outcome.written is not None
        return Installation(outcome.written, outcome.mapped, version, neighbors.learned, outcome.state)

    async def _plan(
        self, session: Session, pipeline: Pipeline, config: Config, neighbors: Known, *, interruptible: bool
    ) -> Plan | None:
        """Return the plan, or None if a change interrupts an audit, which can take longer than the change may wait."""
        with tracing.span("plan"):
            return await self._planned(session, pipeline, config, neighbors, interruptible=interruptible)

    async def _planned(
        self, session: Session, pipeline: Pipeline, config: Config, neighbors: Known, *, interruptible: bool
    ) -> Plan | None:
        planning = asyncio.create_task(plan(session, pipeline.schema, config, self.mapping, neighbors))
        waking = asyncio.create_task(self._wake.wait())
        try:
            await asyncio.wait({planning, waking} if interruptible else {planning}, return_when=asyncio.FIRST_COMPLETED)
            return planning.result() if planning.done() else None
        finally:
            for task in (planning, waking):
                task.cancel()
            await asyncio.gather(planning, waking, return_exceptions=True)

    def _count(self, outcome: Outcome) -> None:
        if outcome.writes or outcome.leaf_ops:
            log.info(
                "%d entries: %d inserted, %d modified, %d deleted, %d leaf operations, %.3f s",
                outcome.entries, outcome.inserted, outcome.modified, outcome.deleted, outcome.leaf_ops, outcome.seconds,
                extra=fields(entries=outcome.entries, inserted=outcome.inserted, modified=outcome.modified, deleted=outcome.deleted),
            )  # fmt: skip
        self.health.count(outcome)

    async def _complete(self, wanted: int) -> None:
        self._done, self._failed = wanted, 0
        await self._report(Phase.INSTALLED)

    async def _fail(self, wanted: int, error: str) -> None:
        self.health.failures += 1
        self._failed, self._failure = wanted, error
        await self._report(Phase.FAILED, error)

    async def _report(self, phase: Phase, error: str | None = None) -> None:
        async with self._condition:
            self.health.phase, self.health.error = phase, error
            self._condition.notify_all()
