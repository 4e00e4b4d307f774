# SPDX-License-Identifier: Apache-2.0
"""The state of a session with a router, which decides when its routes are complete, stale or removed. Without I/O."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from frontage.bgp.update import GracefulRestart, Path
from frontage.fields import IPAddress, IPNetwork

SETTLE_TIME = 3.0
"""Seconds without a message of a router after which its announcement counts as complete."""


@dataclass(slots=True)
class Router:
    """A router and its announcements."""

    address: IPAddress
    deadline: float
    """The time at which stale routes are removed."""
    is_up: bool = False
    waits_for_frr: bool = True
    """True until FRR reports a session for the first time, because FRR or this controller has just started."""
    graceful_restart: GracefulRestart | None = None
    epoch: int = 0
    """Counts the sessions. Routes of earlier ones are stale."""
    settles: float = math.inf
    """The time at which the announcement of this session counts as complete, unless more arrives; infinite without a session."""
    is_settled: bool = False
    restarts: bool = False
    """True while the router restarts gracefully. Its announcement is then complete when FRR reports it."""
    paths: dict[IPNetwork, tuple[Path, int]] = field(default_factory=dict)
    """The paths, and the sessions in which they were announced."""

    def on_up(self, restart: GracefulRestart | None, now: float) -> None:
        """Begin a session."""
        self.is_up, self.is_settled, self.epoch = True, False, self.epoch + 1
        self.waits_for_frr = False
        self.graceful_restart = restart
        self.settles = now + SETTLE_TIME

    def on_message(self, now: float) -> None:
        """Note that the announcement of this session is not complete yet."""
        if not self.is_settled:
            self.settles = now + SETTLE_TIME

    def restart_seconds(self, stale_time: float) -> float:
        """Return the seconds for which the routes stay while the router restarts."""
        return stale_time if self.graceful_restart is None else min(self.graceful_restart.seconds, stale_time)

    def fall(self, now: float) -> None:
        """End the session and remove its routes."""
        self.is_up, self.is_settled, self.settles, self.deadline = False, False, math.inf, now
        self.restarts = False

    def expect_return(self, now: float, seconds: float) -> None:
        """End the session, but keep its routes for some seconds."""
        if self.is_up or math.isinf(self.deadline):
            self.deadline = now + seconds
        self.is_up, self.is_settled, self.settles = False, False, math.inf

    def settle(self) -> None:
        """Note that the announcement of this session is complete."""
        self.is_settled, self.restarts, self.deadline = True, False, math.inf

    @property
    def due(self) -> float:
        """The time at which the session settles, or at which stale routes are removed; infinite if neither will happen."""
        if self.is_up:
            return math.inf if self.is_settled else self.settles
        return self.deadline

    @property
    def is_done(self) -> bool:
        """True if the router has announced its routes, or had the time to do so."""
        return self.is_settled or math.isinf(self.deadline)

    @property
    def stale(self) -> int:
        """The number of stale routes."""
        return (
            0 if self.is_up and self.is_settled else sum(epoch != self.epoch or not self.is_up for _, epoch in self.paths.values())
        )
