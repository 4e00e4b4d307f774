"""The running controller: keeps one switch in the state that one configuration asks for.

    config = load("frontage.yaml")
    controller = Controller(config)
    task = asyncio.create_task(controller.run())
    await controller.installed()

A controller whose election id is not the highest stands by: it keeps its connection, watches, and takes over when the
primary's connection ends.
"""

from __future__ import annotations

import asyncio
import logging
import time

from frontage.config import Config
from frontage.config.schema import Device
from frontage.p4.errors import ElectionIdInUseError, SwitchError, UnreachableError, WriteRefusedError
from frontage.p4.p4info import Pipeline, PipelineError
from frontage.p4.session import Role, Session
from frontage.service.health import Health, Phase
from frontage.state.reconcile import Outcome, ReconcileError, push, reconcile
from frontage.state.steering import Change, EndUserMapping, MappingEntries

log = logging.getLogger(__name__)

BACKOFF_FIRST = 0.1
BACKOFF_LAST = 5.0
"""Seconds between attempts, doubling from the first to the last."""

PROBE_INTERVAL = 5.0
PROBE_TIMEOUT = 5.0
"""Seconds between looks whether the switch is still there and runs our program, and for its answer. (Not HTTP/2's keepalive:
servers of gRPC's own library end connections that use it as often.)"""

AUDIT_INTERVAL = 60.0
"""Seconds after which the switch is read back although nothing has changed."""

CONNECT_TIMEOUT = 5.0


class Controller:
    """One switch, a configuration, an end-user mapping. `run` until cancelled; `apply` changes the one, `steer` the other."""

    def __init__(self, config: Config, *, election_id: int | None = None, mapping: EndUserMapping | None = None):
        self.config = config
        self.mapping = mapping or EndUserMapping()
        self._changes: list[Change] = []
        """Of the mapping, not yet written."""
        self._mapped: tuple[Config, MappingEntries] | None = None
        """What the switch has of the mapping, and under which configuration; None if that is uncertain."""
        self.health = Health()
        self.pipeline: Pipeline | None = None
        self.session: Session | None = None
        """The connection, while there is one; it reads in every role."""
        self._election_id = election_id or config.device.election_id
        self._role = Role.BACKUP
        self._resync = True
        self._wake = asyncio.Event()
        # Changes are numbered, so that a waiter knows whether its own has been dealt with.
        self._wanted = 1
        self._done = 0
        self._failed = 0
        self._condition = asyncio.Condition()

    async def run(self) -> None:
        """Connect, install, watch, reconnect; ends only by cancellation."""
        backoff = BACKOFF_FIRST
        while True:
            started = time.monotonic()
            try:
                await self._run_session()
            except ElectionIdInUseError as error:
                # Another controller has it: stand by below.
                log.info("%s", error)
                self._election_id = max(1, self._election_id - 1)
                await self._report(Phase.CONNECTING, str(error))
            except UnreachableError as error:
                log.warning("%s", error)
                await self._report(Phase.CONNECTING, str(error))
            except (SwitchError, PipelineError) as error:
                log.error("%s", error)
                await self._fail(self._wanted, str(error))
            if time.monotonic() - started > BACKOFF_LAST:
                backoff = BACKOFF_FIRST
            await asyncio.sleep(backoff)
            backoff = min(2 * backoff, BACKOFF_LAST)

    async def change(self, config: Config, mapping: Change | None = None) -> None:
        """Replace the configuration, and with it some of the end-user mapping, without waiting for their installation."""
        async with self._condition:
            self.config = config
            if mapping is not None:
                self.mapping.apply(mapping)
            self._wanted += 1
        self._wake.set()

    async def steer(self, change: Change) -> None:
        """Change the end-user mapping, without waiting for its installation (`installed` does). Only the difference is written, and
        nothing is read. Raises MappingError, and then nothing has changed."""
        async with self._condition:
            MappingEntries(self.config, EndUserMapping()).check(change)
            self.mapping.apply(change)
            self._changes.append(change)
            self._wanted += 1
        self._wake.set()

    async def installed(self) -> None:
        """Wait until the present configuration is installed. Raises ReconcileError with the reason if it cannot be.

        While there is no connection, or another controller leads, this waits.
        """
        wanted = self._wanted
        async with self._condition:
            await self._condition.wait_for(
                lambda: self._failed >= wanted or (self._done >= wanted and self.health.phase is Phase.INSTALLED)
            )
            if self.health.phase is not Phase.INSTALLED:
                raise ReconcileError(self.health.error or "not installed")

    async def apply(self, config: Config) -> None:
        """`change`, then `installed`."""
        await self.change(config)
        await self.installed()

    @property
    def primary(self) -> bool:
        return self.session is not None and self._role is Role.PRIMARY

    async def _run_session(self) -> None:
        """One connection, from its beginning to its end."""
        device = self.config.device
        # Loaded anew each time: the program may have been compiled again.
        self.pipeline = pipeline = await asyncio.to_thread(Pipeline.load, device.pipeline.p4info, device.pipeline.json_file)
        async with Session(device.address, device.device_id) as session:
            await session.connect(CONNECT_TIMEOUT)
            self._role, self._resync, self._mapped = Role.BACKUP, True, None
            self.health.election_id = 0  # until the switch has answered, this is no standby
            self.health.connections += 1
            await session.arbitrate(self._election_id)
            self.session = session
            listen = asyncio.create_task(self._listen(session))
            work = asyncio.create_task(self._work(session, pipeline, device))
            try:
                done, _ = await asyncio.wait({listen, work}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                self.session = None
                for task in (listen, work):
                    task.cancel()
                await asyncio.gather(listen, work, return_exceptions=True)
            # The stream says best why a connection ended; a request that failed with it says less.
            for task in sorted(done, key=lambda task: task is work):
                task.result()

    async def _listen(self, session: Session) -> None:
        """Follow the roles."""
        async for arbitration in session.arbitrations():
            log.info("device %d: role %s, election id %d", session.device_id, arbitration.role.value, session.election_id)
            self._role = arbitration.role
            self.health.election_id = session.election_id
            if arbitration.role is Role.NO_PRIMARY:
                # The primary is gone, and the place goes to whoever offers more than any before (P4Runtime, section 5.3).
                self._election_id = max(arbitration.election_id, self._election_id) + 1
                await session.arbitrate(self._election_id)
            self._wake.set()

    async def _work(self, session: Session, pipeline: Pipeline, device: Device) -> None:
        """Install whenever there is reason to; returns when the configuration names another device."""
        retry = BACKOFF_FIRST
        audited = time.monotonic()
        while self.config.device == device:
            delay = PROBE_INTERVAL
            if self._role is Role.PRIMARY:
                wanted = self._wanted
                try:
                    await self._install(session, pipeline, wanted)
                    retry = BACKOFF_FIRST
                except (ReconcileError, WriteRefusedError) as error:
                    log.error("%s", error)
                    await self._fail(wanted, str(error))
                    delay, retry = retry, min(2 * retry, AUDIT_INTERVAL)
            elif self.health.election_id:
                await self._report(Phase.STANDBY)
            while not await self._woken(delay):
                delay = PROBE_INTERVAL
                # A switch that vanished without ending the connection is noticed here, and one that was given another program.
                cookie = await session.installed_pipeline(PROBE_TIMEOUT)
                if self._role is Role.PRIMARY and (cookie != pipeline.cookie or self.health.phase is Phase.FAILED):
                    break
                if time.monotonic() - audited > AUDIT_INTERVAL:
                    # Packets that operate on leaves are not acknowledged: send them again.
                    self._resync = True
                    break
            audited = time.monotonic() if self._resync else audited

    async def _woken(self, seconds: float) -> bool:
        """Wait for a reason to look again; False if there is none in time."""
        try:
            # Not wait_for: before Python 3.12 it loses a cancellation that comes together with the event.
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return False
        self._wake.clear()
        return True

    async def _install(self, session: Session, pipeline: Pipeline, wanted: int) -> None:
        if self.health.phase is not Phase.INSTALLED:
            await self._report(Phase.INSTALLING)
        config, changes = self.config, self._changes
        self._changes = []
        mapped, self._mapped = self._mapped, None  # uncertain, until it is written
        if changes and mapped is not None and mapped[0] is config and not self._resync:
            for change in changes:
                entries = self.health.last.entries if self.health.last else 0
                outcome = await push(session, pipeline.schema, mapped[1], mapped[1].change(change), entries)
                await self._count(outcome, wanted)
            self._mapped = mapped
            return
        if await session.installed_pipeline() != pipeline.cookie:
            log.info("setting the pipeline")
            await session.set_pipeline(pipeline)
            self.health.pipelines_set += 1
            self._resync = True
        outcome = await reconcile(session, pipeline.schema, config, self.mapping, resync=self._resync)
        if self._resync:
            await session.learn(pipeline.schema)
        self._resync = False
        self._mapped = config, outcome.mapped
        await self._count(outcome, wanted)

    async def _count(self, outcome: Outcome, wanted: int) -> None:
        if outcome.writes or outcome.leaf_ops:
            log.info(
                "%d entries: %d inserted, %d modified, %d deleted, %d leaf operations, %.3f s",
                outcome.entries, outcome.inserted, outcome.modified, outcome.deleted, outcome.leaf_ops, outcome.seconds,
            )  # fmt: skip
        self.health.count(outcome)
        self._done, self._failed = wanted, 0
        await self._report(Phase.INSTALLED)

    async def _fail(self, wanted: int, error: str) -> None:
        self.health.failures += 1
        self._failed = wanted
        await self._report(Phase.FAILED, error)

    async def _report(self, phase: Phase, error: str | None = None) -> None:
        async with self._condition:
            self.health.phase, self.health.error = phase, error
            self._condition.notify_all()
