# SPDX-License-Identifier: Apache-2.0
"""The switches through which the checks of one server pass. Nothing here reads a clock or does I/O.

A server is checked through one switch at a time. A failure through one switch may be a fault of that switch, so another switch
confirms it before it counts. If the server passes there, the first switch has a *path fault*: the server is checked through other
switches, and the path is tested until it is mended. A failed server is checked through all switches, so that it recovers through
any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from frontage.checks.servers import Verdict


@dataclass(slots=True)
class PathFault:
    """A switch through which a server fails its checks, while it passes them through another one."""

    error: str | None
    passed: int = 0
    """Consecutive passed checks since the last failed one."""


@dataclass(frozen=True, slots=True)
class _Suspicion:
    """A failure that awaits its confirmation."""

    switch: str
    error: str | None


def preferences(sid: int, switches: Sequence[str]) -> list[str]:
    """Return the switches in the order in which the server with this SID uses them.

    Servers with consecutive SIDs spread evenly over all switches, and over the others if one is missing.
    """
    if not switches:
        return []
    home = sid % len(switches)
    others = [*switches[home + 1 :], *switches[:home]]
    turn = sid // len(switches) % len(others) if others else 0
    return [switches[home], *others[turn:], *others[:turn]]


@dataclass(slots=True)
class Paths:
    """The switches of one server."""

    order: list[str]
    """All switches, the preferred one first."""
    usable: AbstractSet[str] = frozenset()
    """The switches whose pings are answered."""
    via: str = field(init=False)
    """The switch whose results count."""
    faults: dict[str, PathFault] = field(default_factory=dict)
    is_failed: bool = False
    """True while the server has failed."""
    _suspicion: _Suspicion | None = None
    _passed: set[str] = field(default_factory=set)
    """The switches whose last result is a passed check."""

    def __post_init__(self) -> None:
        self.via = self.order[0]

    @property
    def is_confirming(self) -> bool:
        """Return whether `via` confirms a failure through another switch."""
        return self._suspicion is not None

    @property
    def checked(self) -> set[str]:
        """The switches through which the server is checked now."""
        return {self.via, *self.faults, *(self.usable if self.is_failed else ())}

    def follow(self, order: list[str], usable: AbstractSet[str]) -> None:
        """Take over the switches of a configuration, and those of them that are usable."""
        self.order, self.usable = order, usable
        self.faults = {name: fault for name, fault in self.faults.items() if name in order}
        self._passed &= set(order)
        if self._suspicion is None or self.via not in usable or self._suspicion.switch not in order:
            self._suspicion = None
            self.via = self._best()

    def take(self, switch: str, verdict: Verdict, error: str | None, *, rise: int, decides: bool) -> Verdict | None:
        """Take the result of a check through a switch. Return the verdict on the server, or None if it does not count.

        ``rise`` is the number of passed checks that end a path fault. ``decides`` means that another failed check fails the server.
        """
        self._remember(switch, verdict)
        if switch != self.via:
            if switch in self.faults:
                self._test(switch, verdict, error, rise)
            if not (self.is_failed and verdict is Verdict.PASSED):
                return None
            self.via = switch
        if self._suspicion is not None:
            return self._confirm(verdict)
        if verdict is Verdict.FAILED and decides and (other := self._other()) is not None:
            self._suspicion = _Suspicion(switch, error)
            self.via = other
            return None
        return verdict

    def _confirm(self, verdict: Verdict) -> Verdict:
        suspicion = self._suspicion
        assert suspicion is not None
        if verdict is not Verdict.UNKNOWN:
            self._suspicion = None
        if verdict is Verdict.PASSED:
            self.faults[suspicion.switch] = PathFault(suspicion.error)
        return verdict

    def _test(self, switch: str, verdict: Verdict, error: str | None, rise: int) -> None:
        fault = self.faults[switch]
        if verdict is Verdict.FAILED:
            fault.error, fault.passed = error, 0
        elif verdict is Verdict.PASSED:
            fault.passed += 1
            if fault.passed >= rise:
                del self.faults[switch]
                if not self.is_confirming and not self.is_failed:
                    self.via = self._best()

    def _remember(self, switch: str, verdict: Verdict) -> None:
        if verdict is Verdict.PASSED:
            self._passed.add(switch)
        elif verdict is Verdict.FAILED:
            self._passed.discard(switch)

    def _best(self) -> str:
        """Return the preferred switch: usable and without a path fault if there is one, and else usable."""
        usable = [name for name in self.order if name in self.usable]
        return next((name for name in usable if name not in self.faults), (usable or self.order)[0])

    def _other(self) -> str | None:
        """Return the switch that can confirm a failure: rather one through which the last check passed."""
        others = [name for name in self.order if name in self.usable and name != self.via and name not in self.faults]
        return next((name for name in others if name in self._passed), others[0] if others else None)
