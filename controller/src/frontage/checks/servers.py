# SPDX-License-Identifier: Apache-2.0
"""The health of one server, from the results of its checks. Nothing here reads a clock: time is an argument, in seconds.

A server fails after `fall` consecutive failed checks, and recovers after `rise` passed ones. The first result of a new server
decides at once. Each failure adds one to a penalty, which halves every `PENALTY_HALF_LIFE` seconds. A server that fails again
before its penalty has decayed needs twice as many passed checks for each earlier failure, so a flapping server stays out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """The result of one check."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """The checker itself could not check, so the result says nothing about the server."""


class ServerHealth(StrEnum):
    """The state of a server according to its checks."""

    UNKNOWN = "unknown"
    """No check has ended yet. The server is used."""
    HEALTHY = "healthy"
    FAILED = "failed"


PENALTY_HALF_LIFE = 60.0
"""Seconds after which the penalty of earlier failures has halved."""
MAX_DOUBLINGS = 5
"""A flapping server needs at most ``rise << MAX_DOUBLINGS`` passed checks."""


@dataclass(slots=True)
class ServerChecks:
    """The health of one server and the results that it follows from."""

    rise: int
    fall: int
    since: float
    """The time of the last change of health."""
    health: ServerHealth = ServerHealth.UNKNOWN
    passed: int = 0
    """Consecutive passed checks."""
    failed: int = 0
    """Consecutive failed checks."""
    error: str | None = None
    """The error of the last failed or unknown check."""
    penalty: float = 0.0
    penalty_at: float = 0.0

    def observe(self, now: float, verdict: Verdict, error: str | None = None) -> bool:
        """Take a result, and return whether the health of the server changed. An unknown result changes only the error."""
        if verdict is Verdict.UNKNOWN:
            self.error = error
            return False
        if verdict is Verdict.PASSED:
            self.failed = 0
            self.passed += 1
            if self.health is ServerHealth.HEALTHY:
                self.error = None
            if self.health is ServerHealth.UNKNOWN or (self.health is ServerHealth.FAILED and self.passed >= self.required(now)):
                return self._become(ServerHealth.HEALTHY, now)
            return False
        self.error = error
        self.passed = 0
        self.failed += 1
        if self.health is ServerHealth.UNKNOWN or (self.health is ServerHealth.HEALTHY and self.failed >= self.fall):
            self.penalty = self._decayed(now) + 1
            self.penalty_at = now
            return self._become(ServerHealth.FAILED, now)
        return False

    def required(self, now: float) -> int:
        """Return the consecutive passed checks that a failed server needs at this time."""
        doublings = min(max(0.0, self._decayed(now) - 1), MAX_DOUBLINGS)
        return math.ceil(self.rise * 2**doublings)

    def _decayed(self, now: float) -> float:
        return self.penalty * math.exp2(-max(0.0, now - self.penalty_at) / PENALTY_HALF_LIFE)

    def _become(self, health: ServerHealth, now: float) -> bool:
        self.health, self.since = health, now
        return True
