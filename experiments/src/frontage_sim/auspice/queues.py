# SPDX-License-Identifier: Apache-2.0
"""Waiting times at name servers: a fluid model of the backlog, plus the queueing delay of random arrivals.

Only a sample of the lookups is simulated, so the queues cannot be simulated request by request. Updates arrive at known rates, and each
simulated lookup counts as many as it stands for. While both together exceed the capacity of a server, the backlog grows, and a request
waits for all of it. Otherwise, a request waits as in an M/G/1 queue (Pollaczek and Khinchine) whose service times are exponential, with
one mean for lookups and one for updates. Name servers on the same machine, ten in the paper, share one queue.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from frontage_sim.auspice.latency_model import Array
from frontage_sim.auspice.scenario import Costs

_RATE_WINDOW = 10.0
"""Time constant in seconds of the moving average of the lookup rate."""
_MAX_UTILISATION = 0.99
"""Utilisation above which only the backlog grows: the mean of the M/G/1 queue would be infinite at 1 in the long run."""


class ServerQueues:
    """The queues of all machines. Machines are indexed by ``server // servers_per_machine``."""

    def __init__(self, updates: Array, costs: Costs, rng: np.random.Generator):
        """``updates`` is the rate per second of each server."""
        self._servers_per_machine = costs.servers_per_machine
        capacity = costs.capacity * costs.servers_per_machine
        machine_updates = self._by_machine(updates)
        self._update_load = (machine_updates * costs.update_cost / capacity).tolist()
        """Share of each machine's time that updates take."""
        self._lookup_time = 1 / capacity
        self._update_time = costs.update_cost / capacity
        self._lookup_rate = [0.0] * len(machine_updates)
        """Lookups per second."""
        self._backlog = [0.0] * len(machine_updates)
        """Seconds of work."""
        self._advanced_to = [0.0] * len(machine_updates)
        self._uniforms: Iterator[float] = iter(())
        self._rng = rng

    def set_rates(self, lookups: Array) -> None:
        """Set the initial lookup rate of each server."""
        self._lookup_rate = self._by_machine(lookups).tolist()

    def count(self, server: int, now: float, requests: float) -> None:
        """Count a simulated lookup, which stands for ``requests`` lookups."""
        machine = server // self._servers_per_machine
        self._advance(machine, now)
        self._lookup_rate[machine] += requests / _RATE_WINDOW

    def wait(self, server: int, now: float) -> float:
        """Return the seconds from the arrival of a lookup until its answer: backlog, random queueing delay, and service time."""
        machine = server // self._servers_per_machine
        self._advance(machine, now)
        rate, update_load = self._lookup_rate[machine], self._update_load[machine]
        utilisation = min(update_load + rate * self._lookup_time, _MAX_UTILISATION)
        # lambda E[S^2] / 2 / (1 - rho), with E[S^2] = 2 E[S]^2.
        mean = (rate * self._lookup_time**2 + update_load * self._update_time) / (1 - utilisation)
        delay = 0.0
        if not self._backlog[machine] and self._uniform() < utilisation:
            delay = -math.log(1 - self._uniform()) * mean / utilisation
        return self._backlog[machine] + delay + self._lookup_time

    def _by_machine(self, rates: Array) -> Array:
        sums: Array = np.add.reduceat(rates, np.arange(0, len(rates), self._servers_per_machine))
        return sums

    def _advance(self, machine: int, now: float) -> None:
        passed = now - self._advanced_to[machine]
        if passed <= 0:
            return
        self._advanced_to[machine] = now
        decay = math.exp(-passed / _RATE_WINDOW)
        rate = self._lookup_rate[machine]
        # The lookup rate decays exponentially during this time; its integral is the number of lookups.
        arrived = self._update_load[machine] * passed + rate * _RATE_WINDOW * (1 - decay) * self._lookup_time
        self._backlog[machine] = max(0.0, self._backlog[machine] + arrived - passed)
        self._lookup_rate[machine] = rate * decay

    def _uniform(self) -> float:
        value = next(self._uniforms, None)
        if value is None:
            self._uniforms = iter(self._rng.random(1 << 14).tolist())
            value = next(self._uniforms)
        return float(value)
