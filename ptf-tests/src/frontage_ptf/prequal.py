# SPDX-License-Identifier: Apache-2.0
"""Reference model of Prequal (Wydrowski et al., NSDI 2024) whose probes read what a switch knows of its servers.

The servers' RPT codes are averaged with a weight of 1/8, in steps of 1/256 as in the switch, which rounds each old share down.
"""

import math
from collections import deque
from dataclasses import dataclass, field

from frontage_ptf.two_choices import MAX_DRAWS, Servers, draws

POOL = 8
PROBES = 3
"""Probes per connection."""
REUSE = 4
"""Connections that may use a probe's result."""
RECENT = 12
"""Number of probes whose loads determine what is hot."""
QUANTILE = 2**-0.25
"""Share of loads that are cold, at least."""
MAX_AGE = 1
"""Maximum age of a result in the switch's ticks."""
MAX_LOAD = 0xFFFF


@dataclass
class Result:
    sid: int
    load: int
    """Score of the requests in flight."""
    latency: int
    tick: int
    uses: int = REUSE


@dataclass
class Prequal:
    """A VIP: what the switch knows of its servers, and the results of probes, the newest first."""

    servers: Servers
    latencies: dict[int, int] = field(default_factory=dict)
    """By slot, in 1/256 of a code."""
    results: list[Result] = field(default_factory=list)
    recent: deque[int] = field(default_factory=lambda: deque([0] * RECENT, RECENT))
    removes_oldest: bool = False

    def observe(self, slot: int, code: int) -> None:
        """Average the RPT of a server's packet."""
        old = self.latencies.get(slot, 0)
        self.latencies[slot] = math.ceil(old * 7 / 8) + 32 * code

    def is_hot(self, result: Result) -> bool:
        """Return true if the result's load exceeds the quantile of recent loads."""
        return result.load > sorted(self.recent)[math.ceil(QUANTILE * RECENT) - 1]

    def _order(self, result: Result) -> tuple[bool, int]:
        hot = self.is_hot(result)
        return hot, result.load if hot else result.latency

    def _expire(self, tick: int) -> None:
        self.results = [result for result in self.results if tick - result.tick <= MAX_AGE]

    def choose(self, hash: int, tick: int) -> int | None:
        """Return the SID for a new connection, or None if no server is found."""
        self._expire(tick)
        if self.results:
            return min(self.results, key=self._order).sid
        numbers = draws(hash, self.servers.depth)
        return next((self.servers.sids[s] for _ in range(MAX_DRAWS) if (s := next(numbers)) in self.servers.sids), None)

    def assign(self, sid: int, unit: int, hash: int, tick: int) -> None:
        """Count a connection of the chosen server, remove a result, and probe servers."""
        own = [result for result in self.results if result.sid == sid]
        used = min(own, key=self._order, default=None)
        for result in own:
            result.load = min(result.load + unit, MAX_LOAD)
        if used is not None:
            used.uses -= 1
        self.results = [result for result in self.results if result.uses]
        if self.results:
            oldest_first = reversed(self.results)
            removed = self.results[-1] if self.removes_oldest else max(oldest_first, key=self._order)
            self.results = [result for result in self.results if result is not removed]
        self.removes_oldest = not self.removes_oldest

        numbers = draws(hash, self.servers.depth)
        probed: list[int] = []
        for _ in range(MAX_DRAWS):
            slot = next(numbers)
            if slot in self.servers.sids and slot not in probed and len(probed) < PROBES:
                probed.append(slot)
                load = self.servers.scores[slot]
                self.results = [Result(self.servers.sids[slot], load, self.latencies.get(slot, 0), tick), *self.results][:POOL]
                self.recent.append(load)
