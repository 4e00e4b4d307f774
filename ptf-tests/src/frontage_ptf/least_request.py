# SPDX-License-Identifier: Apache-2.0
"""Reference model of Envoy's weighted least request for servers of unequal weights, with exact deadlines.

Envoy keeps an entry for each server in a queue by deadlines (``EdfScheduler``). The entry of the server that is chosen returns with a
deadline that is later by the inverse of its dynamic weight: weight / (active requests + 1), for an active_request_bias of 1.
"""

from dataclasses import dataclass

MAX_ADDITION = 0x3FFF
"""Maximum inverse of a dynamic weight: deadlines in the switch have 15 bits."""


@dataclass
class Server:
    sid: int
    flow: int
    """Score of one flow: a multiple of 1 / weight."""
    score: int = 0
    """Score of the active flows."""
    deadline: int | None = None
    """Virtual time; None if the server gets no new connections."""
    tie: int = 0
    """Part of the hash of the connection that led to the deadline, which decides between equal deadlines."""


class Queue:
    """The servers of a VIP, by slot, and virtual time."""

    def __init__(self) -> None:
        self.servers: dict[int, Server] = {}
        self.now = 0

    def _postpone(self, server: Server, hash: int) -> None:
        server.deadline = self.now + min(server.score + server.flow, MAX_ADDITION)
        server.tie = hash >> 16 & 0xF

    def _activate(self, slot: int, sid: int, flow: int, score: int, hash: int) -> Server:
        known = self.servers.get(slot)
        if known is None or known.sid != sid:
            known = self.servers[slot] = Server(sid, flow)
        if score:
            known.flow = min(known.flow, score)
        if known.deadline is None:
            known.score = score
            self._postpone(known, hash)
        return known

    def report(self, slot: int, sid: int, score: int, flow: int, hash: int) -> None:
        """Store a server's score; ``flow`` is the initial score of one flow."""
        self._activate(slot, sid, flow, score, hash).score = score

    def seed(self, slot: int, sid: int, flow: int) -> None:
        """Let a server get new connections."""
        self._activate(slot, sid, flow, 0, 0)

    def clear(self, slot: int) -> None:
        """Let a server get no new connections."""
        if slot in self.servers:
            self.servers[slot].deadline = None

    def choose(self) -> Server | None:
        """Return the server with the earliest deadline, which becomes the virtual time."""
        waiting = [(s.deadline, -s.tie, -s.sid, s) for s in self.servers.values() if s.deadline is not None]
        if not waiting:
            return None
        self.now, *_, server = min(waiting)
        return server

    def assign(self, server: Server, hash: int) -> None:
        """Count a new connection of the chosen server."""
        self._postpone(server, hash)
        server.score += server.flow
