# SPDX-License-Identifier: Apache-2.0
"""Reference model of the power of two choices (Mitzenmacher, IEEE Transactions on Parallel and Distributed Systems, 2001)."""

from collections.abc import Iterator

MAX_DRAWS = 8


def draws(seed: int, depth: int) -> Iterator[int]:
    """Yield random numbers of ``depth`` bits: the upper bits of the linear congruential generator of Numerical Recipes."""
    state = seed
    while True:
        state = (1664525 * state + 1013904223) % 2**32
        yield state // 2 ** (32 - depth)


class Servers:
    """The servers of a VIP that get new connections: SID and score by slot, the slot counted from the first one of the VIP."""

    def __init__(self, depth: int):
        self.depth = depth
        self.sids: dict[int, int] = {}
        self.scores: dict[int, int] = {}

    def at(self, slot: int) -> tuple[int, int] | None:
        """Return SID and score of the server of a slot, or None if it gets no new connections."""
        return (self.sids[slot], self.scores[slot]) if slot in self.sids else None

    def set(self, slot: int, sid: int, score: int) -> None:
        """Store a server's score, at most 0xfffe."""
        self.sids[slot], self.scores[slot] = sid, min(score, 0xFFFE)

    def add(self, slot: int, sid: int, score: int) -> None:
        """Add to a server's score, if it gets new connections."""
        if slot in self.sids:
            self.set(slot, sid, self.scores[slot] + score)

    def seed(self, slot: int, sid: int) -> None:
        """Let a server get new connections: with its score, or zero."""
        if self.sids.get(slot) != sid:
            self.set(slot, sid, 0)

    def clear(self, slot: int) -> None:
        """Let a server get no new connections."""
        self.sids.pop(slot, None)
        self.scores.pop(slot, None)


def choose(servers: Servers, seed: int) -> int | None:
    """Return the slot of the less loaded of two random servers, or None if no draw names one."""
    numbers = draws(seed, servers.depth)
    drawn = [slot for _ in range(MAX_DRAWS) if (slot := next(numbers)) in servers.sids][:2]
    return min(drawn, key=lambda slot: servers.scores[slot], default=None)  # the first of equals
