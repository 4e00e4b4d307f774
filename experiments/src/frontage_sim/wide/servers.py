# SPDX-License-Identifier: Apache-2.0
"""How long requests wait at name servers: queues as a fluid, and what arrivals at random add to that.

Of all lookups a sample is followed, so a queue cannot be simulated request by request. Updates come at known rates; lookups count with
what each stands for. Where both are more than a server can do the backlog grows, and a request waits for all of it; where they are
less, it waits as in an M/G/1 queue (Pollaczek and Khinchine) with service times that are exponential for lookups and updates each.
Name servers that are on one machine, as ten of the paper's are, have one queue.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from frontage_sim.wide.latencies import Array
from frontage_sim.wide.scenario import Costs

_MEMORY = 10.0
"""Seconds over which the rate of lookups is averaged."""
_FULL = 0.99
"""From there on what is waited is the backlog: the queue's mean would be infinite at 1, if it lasted for ever."""


class Servers:
    def __init__(self, updates: Array, costs: Costs, rng: np.random.Generator):
        """``updates`` a second by server."""
        self._shared = costs.shared
        serves = costs.serves * costs.shared
        together = self._of_machines(updates)
        self._updates = (together * costs.write / serves).tolist()
        """The share of a machine's time."""
        self._read = 1 / serves
        self._write = costs.write / serves
        self._rate = [0.0] * len(together)
        """Of lookups, a second."""
        self._backlog = [0.0] * len(together)
        """Seconds of work."""
        self._last = [0.0] * len(together)
        self._drawn: Iterator[float] = iter(())
        self._rng = rng

    def expect(self, lookups: Array) -> None:
        """The rates that lookups begin with."""
        self._rate = self._of_machines(lookups).tolist()

    def count(self, server: int, now: float, requests: float) -> None:
        """A followed lookup arrives, which stands for so many."""
        machine = server // self._shared
        self._advance(machine, now)
        self._rate[machine] += requests / _MEMORY

    def wait(self, server: int, now: float) -> float:
        """Seconds until who arrives now is answered: backlog, chance, and its own service."""
        machine = server // self._shared
        self._advance(machine, now)
        rate, updates = self._rate[machine], self._updates[machine]
        busy = min(updates + rate * self._read, _FULL)
        # lambda E[S^2] / 2, with E[S^2] = 2 E[S]^2.
        mean = (rate * self._read**2 + updates * self._write) / (1 - busy)
        chance = 0.0
        if not self._backlog[machine] and self._uniform() < busy:
            chance = -math.log(1 - self._uniform()) * mean / busy
        return self._backlog[machine] + chance + self._read

    def _of_machines(self, rates: Array) -> Array:
        found: Array = np.add.reduceat(rates, np.arange(0, len(rates), self._shared))
        return found

    def _advance(self, machine: int, now: float) -> None:
        passed = now - self._last[machine]
        if passed <= 0:
            return
        self._last[machine] = now
        fresh = math.exp(-passed / _MEMORY)
        rate = self._rate[machine]
        # What came in while the rate sank, and what was done.
        came = self._updates[machine] * passed + rate * _MEMORY * (1 - fresh) * self._read
        self._backlog[machine] = max(0.0, self._backlog[machine] + came - passed)
        self._rate[machine] = rate * fresh

    def _uniform(self) -> float:
        found = next(self._drawn, None)
        if found is None:
            self._drawn = iter(self._rng.random(1 << 14).tolist())
            found = next(self._drawn)
        return float(found)
