# SPDX-License-Identifier: Apache-2.0
"""The checker's own connectivity, from pings of the switch. Nothing here reads a clock: time is an argument, in seconds.

A failed check proves something about a server only if the checker was connected to the switch while it lasted. So the switch must
have answered every ping since the check began, and one that was sent after its end.
"""

from __future__ import annotations

import math
from enum import Enum


class Proof(Enum):
    """The checker's connectivity during a check, as far as pings prove it."""

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    OPEN = "open"
    """It depends on pings that are not yet answered or lost."""


class Link:
    """The pings to one address of the switch, by the time at which they were sent."""

    def __init__(self) -> None:
        self._outstanding: set[float] = set()
        self._answered = -math.inf
        self._lost = -math.inf

    @property
    def is_up(self) -> bool:
        """Return whether the newest ping with a result was answered; false before the first one."""
        return self._answered > self._lost

    @property
    def has_result(self) -> bool:
        """Return whether a ping was answered or lost."""
        return self._answered != self._lost

    def sent(self, at: float) -> None:
        self._outstanding.add(at)

    def answered(self, at: float) -> None:
        """Take the answer to the ping that was sent at this time. An answer to a lost ping comes too late and is ignored."""
        if at in self._outstanding:
            self._outstanding.remove(at)
            self._answered = max(self._answered, at)

    def lost(self, at: float) -> None:
        """Give up the ping that was sent at this time."""
        if at in self._outstanding:
            self._outstanding.remove(at)
            self._lost = max(self._lost, at)

    def proof(self, begin: float, end: float) -> Proof:
        """Return whether the checker was connected during a check that lasted from ``begin`` to ``end``."""
        if self._lost >= begin:
            return Proof.DISCONNECTED
        if self._answered >= end and not any(at < end for at in self._outstanding):
            return Proof.CONNECTED
        return Proof.OPEN
