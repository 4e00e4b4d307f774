# SPDX-License-Identifier: Apache-2.0
"""The state machine of one neighbor, without I/O: time is an argument.

The states are those of RFC 4861, 7.3.2, without DELAY, because the controller does not see the packets to the neighbor:

    INCOMPLETE --answer--> REACHABLE --time--> PROBE --no answer--> FAILED --answer--> REACHABLE
        STALE (the address is not confirmed) --at once--> PROBE --answer--> REACHABLE

A message that names another Ethernet address than the known one is a claim. Before the claim counts, the known address is probed
by unicast. If it answers, the claim is a conflict, and the known address stays.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import NamedTuple

from frontage.config.links import Resolved, Wanted
from frontage.fields import IPAddress, Mac

RETRANSMIT = 1.0
"""Seconds between probes (RFC 4861, 10: RETRANS_TIMER)."""
MAX_UNICAST_PROBES = 3
"""Probes to the known Ethernet address (RFC 4861, 10: MAX_UNICAST_SOLICIT)."""
MAX_MULTICAST_PROBES = 3
"""Requests to all hosts before the neighbor fails (RFC 4861, 10: MAX_MULTICAST_SOLICIT)."""
REACHABLE_TIME = 30.0
"""Seconds for which an answer counts, times 0.5 to 1.5 at random (RFC 4861, 6.3.2 and 10: REACHABLE_TIME)."""
FIRST_RETRY = 0.25
MAX_RETRY = 30.0
"""Seconds between requests for an unresolved address, doubling from the first to the largest, times 0.75 to 1.25 at random."""
CLAIM_PROBES = 3
CLAIM_INTERVAL = 0.3
"""Probes to the known Ethernet address after a claim, and seconds between them."""
CLAIM_HOLD = 5.0
"""Seconds after a conflict in which further claims are ignored, so that a flood of claims causes few probes."""


class State(StrEnum):
    """The state of a neighbor."""

    INCOMPLETE = "incomplete"
    REACHABLE = "reachable"
    STALE = "stale"
    PROBE = "probe"
    FAILED = "failed"


class Effect(Enum):
    """The effect of a message on a neighbor."""

    LEARNED = "learned"
    """The neighbor had no Ethernet address, and now has one."""
    CONFIRMED = "confirmed"
    CLAIMED = "claimed"
    """The message names another address, and the known one is probed."""
    MOVED = "moved"
    """The message names another address, and the known one has not answered probes: the neighbor has the new address."""
    CONFLICT = "conflict"
    """The known address has answered after a claim: the claim is rejected."""
    IGNORED = "ignored"


class Request(NamedTuple):
    """A request to send: to all hosts of a port, or to one Ethernet address."""

    address: IPAddress
    port: str
    mac: Mac | None


@dataclass(slots=True)
class _Claim:
    """A claim that is being checked."""

    found: Resolved
    probes: int = 0


class Neighbor:
    """The state of one wanted address."""

    def __init__(self, wanted: Wanted, now: float, random_source: random.Random):
        self.wanted = wanted
        self.state = State.INCOMPLETE
        self.resolved: Resolved | None = None
        self.since = now
        """The time of the last change of the port or the Ethernet address."""
        self.confirmed: float | None = None
        """The time of the last answer."""
        self.due = now
        """The time of the next request."""
        self.conflicts = 0
        self.claimant: Resolved | None = None
        """The port and the Ethernet address of the last rejected claim."""
        self._random = random_source
        self._sent = 0
        """Requests in this state."""
        self._claim: _Claim | None = None
        self._held_until = now

    def adopt(self, found: Resolved, now: float) -> None:
        """Take over an Ethernet address that is not confirmed, and probe it at once."""
        self._set(found, now)
        self.doubt(now)

    def doubt(self, due: float) -> None:
        """Begin again at ``due``: nothing is known about the time before."""
        self._claim = None
        self._enter(State.STALE if self.resolved is not None else State.INCOMPLETE, due)

    def poll(self, now: float, *, may_fail: bool = True) -> list[Request]:
        """Return the requests that are due, and set the time of the next ones.

        Without ``may_fail``, a neighbor that does not answer keeps its Ethernet address, and is probed again later.
        """
        if now < self.due:
            return []
        if self._claim is not None:
            return self._check_claim(self._claim, now)
        if self.state in (State.REACHABLE, State.STALE):
            self._enter(State.PROBE, now)
        if self.state is State.PROBE and self._sent >= MAX_UNICAST_PROBES + MAX_MULTICAST_PROBES:
            if not may_fail:
                self._enter(State.PROBE, now + MAX_RETRY * self._random.uniform(0.75, 1.25))
                return []
            self._set(None, now)
            self._enter(State.FAILED, now)
        elif self.state is State.INCOMPLETE and self._sent >= MAX_MULTICAST_PROBES:
            self.state = State.FAILED
        self._sent += 1
        if self.state is State.PROBE:
            self.due = now + RETRANSMIT
            if self.resolved is not None and self._sent <= MAX_UNICAST_PROBES:
                return [self._to_known(self.resolved)]
        else:
            delay = min(MAX_RETRY, FIRST_RETRY * 2 ** min(self._sent - 1, 16))
            self.due = now + delay * self._random.uniform(0.75, 1.25)
        return [Request(self.wanted.address, link.port.name, None) for link in self.wanted.links]

    def on_message(self, found: Resolved, now: float, *, is_answer: bool) -> Effect:
        """Process a message of a host that says that it has this address.

        ``is_answer`` means that the host answers a request; other messages do not confirm that the host is reachable.
        """
        if self.resolved is None:
            self._set(found, now)
            self._confirm(now) if is_answer else self._enter(State.STALE, now)
            return Effect.LEARNED
        if found == self.resolved:
            return self._on_known_address(now, is_answer=is_answer)
        if self.state is State.PROBE and self._sent > MAX_UNICAST_PROBES:
            self._move(found, now)
            return Effect.MOVED
        if self._claim is not None or now < self._held_until:
            return Effect.IGNORED
        self._claim = _Claim(found)
        self.due = now
        return Effect.CLAIMED

    def _on_known_address(self, now: float, *, is_answer: bool) -> Effect:
        if not is_answer:
            return Effect.IGNORED
        claim, self._claim = self._claim, None
        self._confirm(now)
        if claim is None or claim.probes == 0:
            return Effect.CONFIRMED
        self.conflicts += 1
        self.claimant = claim.found
        self._held_until = now + CLAIM_HOLD
        return Effect.CONFLICT

    def _check_claim(self, claim: _Claim, now: float) -> list[Request]:
        assert self.resolved is not None
        if claim.probes < CLAIM_PROBES:
            claim.probes += 1
            self.due = now + CLAIM_INTERVAL
            return [self._to_known(self.resolved)]
        self._move(claim.found, now)
        return self.poll(now)

    def _move(self, found: Resolved, now: float) -> None:
        """Replace the known address by one that a message has named. It is probed at once."""
        self._claim = None
        self._set(found, now)
        self._enter(State.STALE, now)

    def _confirm(self, now: float) -> None:
        self.confirmed = now
        self._enter(State.REACHABLE, now + REACHABLE_TIME * self._random.uniform(0.5, 1.5))

    def _enter(self, state: State, due: float) -> None:
        self.state, self.due, self._sent = state, due, 0

    def _set(self, found: Resolved | None, now: float) -> None:
        if found != self.resolved:
            self.resolved, self.since = found, now

    def _to_known(self, known: Resolved) -> Request:
        return Request(self.wanted.address, known.port, known.mac)
