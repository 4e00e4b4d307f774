# SPDX-License-Identifier: Apache-2.0
"""Events of a fleet during a run of clients: when each began, and what happened between it and the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

ADDED = "servers added"
DRAINED = "servers drained"
REMOVED = "drained server removed"
KILLED = "switch killed"
RETURNED = "switch returns, without state"
REPROGRAMMED = "switch drained, and restarted with another program"
ROTATED = "key rotated"
END = "end"
"""The counters are read: everything that an event causes until then counts."""


@dataclass
class Timeline:
    """The events by name, in order. Times are seconds since the plan of the clients began."""

    begun: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)

    def noting(self, name: str, clock: Callable[[], float], action: Callable[[], object]) -> Callable[[], None]:
        """Return the action of an event, which notes when it begins and ends. An event may consist of several actions."""

        def act() -> None:
            self.begun.setdefault(name, clock())
            action()
            self.ended[name] = clock()

        return act

    def schedule(
        self, earliest: Mapping[str, float], clock: Callable[[], float], actions: Iterable[tuple[str, Callable[[], object]]]
    ) -> list[tuple[float, Callable[[], None]]]:
        """Return the earliest time and the noted action of each event. ``actions`` are those of the events by name, in order."""
        return [(earliest[name], self.noting(name, clock, action)) for name, action in actions]

    def by_event(self, times: Iterable[float]) -> dict[str, list[float]]:
        """Return the times by the last event before them, in seconds since it began.

        Times before the first event count for it, and times after `END` for the last one.
        """
        begins = [(begin, name) for name, begin in self.begun.items() if name != END]
        found: dict[str, list[float]] = {name: [] for _, name in begins}
        for time in times:
            begin, name = max((event for event in begins if event[0] <= time), default=begins[0])
            found[name].append(time - begin)
        return found

    def counts(self, times: Iterable[float]) -> dict[str, int]:
        """Return how many of the times follow each event."""
        return {name: len(found) for name, found in self.by_event(times).items()}

    def until_last(self, times: Iterable[float]) -> dict[str, float]:
        """Return the seconds from the beginning of each event to the last of the times before the next event; 0 without any."""
        first, end = next(iter(self.begun.values())), self.begun[END]
        found = self.by_event(time for time in times if first <= time < end)
        return {name: round(max(since, default=0.0), 1) for name, since in found.items()}
