# SPDX-License-Identifier: Apache-2.0
"""The switches of one configuration. Each has a `Controller` of its own.

A change of the configuration is rolled out switch by switch (``state/rollout.py``). A rollout stops at the first switch that fails,
and then restores the previous configuration of those before it. A switch that is unreachable when the rollout reaches it does not
stop the rollout: it gets the configuration when it is back. The configuration of a single switch is not rolled back, but tried
again.

Changes of servers' states alone, as health checks make them, go to all switches at once, and are not rolled back: no switch waits
for another one.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Awaitable, Callable, Iterable

from frontage.config import Config
from frontage.config.vips import Server
from frontage.observe import tracing
from frontage.p4.p4info import Pipeline
from frontage.p4.session import Session
from frontage.service.controller import Controller, Election
from frontage.service.health import Phase
from frontage.state.activation import is_activation
from frontage.state.errors import ReconcileError
from frontage.state.owners import latest_pools
from frontage.state.rollout import preparation
from frontage.state.steering import Change, EndUserMapping

log = logging.getLogger(__name__)

SWITCH_TIMEOUT = 60.0
"""Seconds that a rollout waits for the installation in one switch."""


class Fleet:
    """Controls all switches of a configuration. `change` and `steer` change what they hold; `run` does the work."""

    def __init__(
        self,
        config: Config,
        *,
        election_id: int | None = None,
        mapping: EndUserMapping | None = None,
        before_install: Callable[[Session, Pipeline, Config], Awaitable[None]] | None = None,
        election: Election | None = None,
    ):
        """``before_install`` runs before the first installation over each connection (`Controller.before_install`)."""
        self._before_install = before_install
        self._election = election
        self.before_last_round: Callable[[], Awaitable[None]] | None = None
        """Called before the second round of a rollout. If it raises ReconcileError, the rollout stops."""
        self.config = config
        """The configuration that the switches have, or get."""
        self.controllers: dict[str, Controller] = {}
        """By name of the switch, in the order of the file."""
        self._complete = config
        """The last configuration that a rollout has installed in all switches, or the first one."""
        self._pools: tuple[tuple[Server, ...], ...] = (config.servers,)
        """The last pools, the newest first: switches may have connections that they hashed by one of them."""
        self.error: str | None = None
        """Why the last rollout stopped; None if it did not."""
        self._election_id = election_id
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._rollout: asyncio.Task[None] | None = None
        self._switches_changed = asyncio.Event()
        for own in config.switches:
            self._add(own, mapping or EndUserMapping())

    @property
    def mapping(self) -> EndUserMapping:
        """The end-user mapping, which is the same on all switches."""
        return next(iter(self.controllers.values())).mapping

    @property
    def primary(self) -> bool:
        """True if this process is the primary of a switch."""
        return any(controller.primary for controller in self.controllers.values())

    @property
    def missing(self) -> list[str]:
        """The names of the switches that do not have the configuration yet."""
        return [name for name, controller in self.controllers.items() if not controller.health.ok]

    async def run(self) -> None:
        """Run the controllers until cancelled. Raises what ends one of them."""
        try:
            while True:
                self._switches_changed.clear()
                for name, controller in self.controllers.items():
                    if name not in self._tasks:
                        self._tasks[name] = asyncio.create_task(controller.run(), name=name)
                changed = asyncio.create_task(self._switches_changed.wait())
                done, _ = await asyncio.wait({changed, *self._tasks.values()}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                for task in done & set(self._tasks.values()):
                    task.result()
        finally:
            await _cancel((*self._tasks.values(), *([self._rollout] if self._rollout else [])))

    async def change(self, config: Config, mapping: Change | None = None) -> None:
        """Begin to replace the configuration, and the end-user mapping with it. `installed` waits for the end.

        This ends a rollout that is not complete; the switches that it has changed go on from there.
        """
        if self._rollout is not None:
            await _cancel((self._rollout,))
        self.error = None
        self.config = config
        before = self._complete.servers
        self._pools = latest_pools((config.servers, before, *self._pools))
        await self._keep_only(config)
        change = mapping or Change()
        if len(self.controllers) == 1:
            self._rollout = None
            self._complete = config
            (controller,), (own,) = self.controllers.values(), self._hashing_by(config, config.servers).switches
            await controller.change(own, change)
        else:
            self._rollout = asyncio.create_task(self._roll_out(config, change))

    async def _announce_last_round(self) -> None:
        """Call `before_last_round`. Raises _SwitchError."""
        if self.before_last_round is not None:
            try:
                await self.before_last_round()
            except ReconcileError as error:
                raise _SwitchError(str(error)) from None

    async def follow_election(self) -> None:
        """Offer this process's current election id to all switches. Only with an `Election`."""
        if not self._may_write and self._rollout is not None:
            # Another controller continues the rollout; this one only remembers the wanted configurations.
            await _cancel((self._rollout,))
            self._rollout = None
            for own in self._hashing_by(self.config, self.config.servers).switches:
                await self.controllers[own.device.name].change(own)
        await asyncio.gather(*(controller.follow_election() for controller in self.controllers.values()))

    async def prepare(self, before: Config, wanted: Config) -> None:
        """Prepare to continue another controller's rollout: each switch first gets the state of the first round.

        The switches have ``before`` or already the state of the first round. `change` to ``wanted`` then completes the rollout.
        """
        if self._rollout is not None:
            await _cancel((self._rollout,))
            self._rollout = None
        self.error, self.config, self._complete = None, wanted, before
        self._pools = latest_pools((wanted.servers, before.servers, *self._pools))
        await self._keep_only(wanted)
        if len(self.controllers) > 1:
            first = self._hashing_by(preparation(before.switches, wanted), before.servers)
            for own in first.switches:
                await self.controllers[own.device.name].change(own)

    async def settled(self, seconds: float) -> None:
        """Wait until all switches have their wanted configuration, or until ``seconds`` have passed."""
        waiting = [asyncio.create_task(controller.installed()) for controller in self.controllers.values()]
        await asyncio.wait(waiting, timeout=seconds)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    def preview(self, config: Config) -> tuple[Config, ...]:
        """Return the configuration that each switch has after `change` has installed ``config``."""
        pools = latest_pools((config.servers, self._complete.servers, *self._pools))
        return config.model_copy(update={"pools": pools}).switches

    async def steer(self, change: Change) -> None:
        """Change the end-user mapping of all switches. Raises MappingError, and then changes nothing."""
        for controller in self.controllers.values():
            await controller.steer(change)

    async def installed(self) -> None:
        """Wait for the end of the rollout, or else until all switches have the configuration.

        `missing` then names the switches that were unreachable. Raises ReconcileError if the rollout stopped, or a switch fails.
        """
        while (rollout := self._rollout) is not None:
            await asyncio.wait({rollout})
            if self._rollout is not rollout:
                continue  # another change has ended it
            if self.error is not None:
                raise ReconcileError(self.error)
            return
        for controller in self.controllers.values():
            await controller.installed()

    def _add(self, config: Config, mapping: EndUserMapping) -> None:
        name = config.device.name
        self.controllers[name] = controller = Controller(
            config, election_id=self._election_id, mapping=copy.deepcopy(mapping), election=self._election
        )
        controller.before_install = self._before_install

    async def _keep_only(self, config: Config) -> None:
        """Stop to control the switches that ``config`` does not name, and begin to control new ones."""
        mapping = self.mapping
        wanted = {own.device.name: own for own in config.switches}
        gone = self.controllers.keys() - wanted.keys()
        await _cancel([self._tasks.pop(name) for name in gone if name in self._tasks])
        for name, own in wanted.items():
            if name not in self.controllers:
                self._add(own, mapping)
        self.controllers = {name: self.controllers[name] for name in wanted}
        self._switches_changed.set()

    async def _roll_out(self, wanted: Config, change: Change) -> None:
        """Install ``wanted`` in all switches, or restore the previous configuration."""
        with tracing.span("rollout", switches=len(wanted.switches)) as span:
            await self._install_everywhere(wanted, change)
            if self.error is not None:
                span.fail(ReconcileError(self.error))

    async def _install_everywhere(self, wanted: Config, change: Change) -> None:
        if not change and self._is_activation(wanted):
            await self._activate(wanted)
            return
        mapping = copy.deepcopy(self.mapping)
        first = preparation([controller.config for controller in self.controllers.values()], wanted)
        try:
            if first is not wanted or self._complete.servers != wanted.servers:
                await self._round(self._hashing_by(first, self._complete.servers), Change())
                await self._announce_last_round()
            await self._round(self._hashing_by(wanted, wanted.servers), change)
        except _SwitchError as error:
            self.error = f"{error}: all switches keep the previous configuration"
            log.error("%s", self.error)
            await self._restore(mapping)
        else:
            self._complete = wanted

    def _is_activation(self, wanted: Config) -> bool:
        """Return whether only the states of servers change, in all switches and since the last complete rollout."""
        pairs = zip(self._complete.switches, wanted.switches, strict=False)
        return len(self._complete.devices) == len(wanted.devices) and all(
            is_activation(before, after) and is_activation(self.controllers[after.device.name].config, after)
            for before, after in pairs
        )

    async def _activate(self, wanted: Config) -> None:
        """Install the states of servers in all switches at once."""
        self._complete = wanted
        waited_for = [own.device.name for own in wanted.switches if self._is_reachable(own.device.name)]
        for own in self._hashing_by(wanted, wanted.servers).switches:
            await self.controllers[own.device.name].change(own)
        results = await asyncio.gather(*(self._installed(name) for name in waited_for), return_exceptions=True)
        errors = [str(result) for result in results if isinstance(result, _SwitchError)]
        if errors:
            self.error = "; ".join(errors)
            log.error("%s", self.error)

    async def _restore(self, mapping: EndUserMapping) -> None:
        """Return to the last complete configuration. If a switch already seals with a newer key, all switches go on with it.

        An older key would turn back the clock of the clients (docs/cookie.md, PAWS).
        """
        keys = max((controller.config.cookie_keys for controller in self.controllers.values()), key=lambda keys: keys[-1].id)
        if keys[-1].id > self._complete.cookie_keys[-1].id:
            self._complete = self._complete.model_copy(update={"cookie_keys": keys})
        self.config = self._complete
        for own in self._hashing_by(self._complete, self._complete.servers).switches:
            controller = self.controllers.get(own.device.name)
            if controller is not None and (controller.config != own or controller.mapping != mapping):
                await controller.change(own, controller.mapping.change_to(mapping))

    def _hashing_by(self, config: Config, servers: tuple[Server, ...]) -> Config:
        """Return ``config`` with a Maglev table of ``servers``, and with the other pools that may have connections."""
        return config.model_copy(update={"pools": latest_pools((servers, *self._pools))})

    async def _round(self, config: Config, change: Change) -> None:
        """Install ``config`` in one switch after the other. Raises _SwitchError."""
        for own in config.switches:
            name = own.device.name
            controller = self.controllers[name]
            is_waited_for = self._is_reachable(name)
            await controller.change(own, change)
            if is_waited_for:
                await self._installed(name)
            else:
                level = logging.WARNING if self._may_write else logging.DEBUG
                log.log(level, "%s: %s: it gets the configuration later", name, controller.health.error or controller.health.phase)

    @property
    def _may_write(self) -> bool:
        return self._election is None or self._election.term is not None

    def _is_reachable(self, name: str) -> bool:
        """Return whether this process is connected to a switch and may write to it."""
        return self._may_write and self.controllers[name].health.phase in (Phase.INSTALLED, Phase.INSTALLING, Phase.FAILED)

    async def _installed(self, name: str) -> None:
        """Wait until a switch has its configuration. Raises _SwitchError."""
        controller = self.controllers[name]
        try:
            async with asyncio.timeout(SWITCH_TIMEOUT):
                await controller.installed()
        except ReconcileError as error:
            raise _SwitchError(f"{name}: {error}") from None
        except TimeoutError:
            why = controller.health.error or controller.health.phase
            raise _SwitchError(f"{name}: not installed after {SWITCH_TIMEOUT:g} s: {why}") from None


class _SwitchError(Exception):
    """A switch does not install its configuration."""


async def _cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    tasks = [task for task in tasks if not task.done()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
