# SPDX-License-Identifier: Apache-2.0
"""The neighbors of one switch, without I/O: checks messages, and applies them to the state machines of wanted addresses only."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum, StrEnum
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

from frontage.config.links import Resolved, Wanted
from frontage.config.network import Port
from frontage.fields import IPAddress, Mac
from frontage.neighbors.machine import Effect, Neighbor, Request, State

START_RATE = 500.0
"""Neighbors per second that are probed again when the controller becomes primary."""


class Kind(IntEnum):
    """The kind of a message, as ``NEIGHBOR_*`` in ``p4src/include/metadata.p4``."""

    ARP_REQUEST = 1
    ARP_REPLY = 2
    ARP_ANNOUNCEMENT = 3
    NDP_SOLICITATION = 4
    NDP_ADVERTISEMENT = 5
    NDP_UNSOLICITED = 6

    @property
    def is_answer(self) -> bool:
        return self in (Kind.ARP_REPLY, Kind.NDP_ADVERTISEMENT)


class Message(NamedTuple):
    """A message of a host about itself: the fields of the digest ``new_neighbor_t``."""

    kind: int
    port: int
    """The number of the port on which the message arrived."""
    address: int
    mac: int
    """Zero if the message has none."""
    source: int
    """The Ethernet source address of the frame."""


class Rejection(StrEnum):
    """The reason why a message is rejected."""

    PORT = "port"
    """It arrived on a port that is not on the link of the address."""
    SOURCE = "source"
    """The Ethernet source address differs from the one in the message."""
    MAC = "mac"
    """The Ethernet address is not unicast, or it is one of the switch's own."""
    OWN_ADDRESS = "own address"
    """A host claims an address of the switch."""


class Result(NamedTuple):
    """The effect of a message."""

    effect: Effect | Rejection | None
    """None: the address is not wanted."""
    address: IPAddress
    claim: Resolved


class Table:
    """The neighbors of one switch. It holds the wanted addresses, and never more."""

    def __init__(self, seed: int | None = None):
        self.neighbors: dict[IPAddress, Neighbor] = {}
        self.conflicts = 0
        """Conflicts of all addresses."""
        self.rejected: Counter[Rejection] = Counter()
        self.rejected_of: Counter[IPAddress] = Counter()
        """Rejected messages by wanted address."""
        self._random = random.Random(seed)
        self._ports: dict[int, Port] = {}
        self._own: set[IPAddress] = set()
        self._own_macs: set[Mac] = set()
        self._due = -math.inf
        self._has_answer = False
        """True if a neighbor has answered since the last `doubt`. Until then, no neighbor fails: the switch may not pass on requests
        or answers at all, and its Ethernet addresses are better than none."""

    def follow(self, ports: Sequence[Port], own: set[IPAddress], wanted: Mapping[IPAddress, Wanted], now: float) -> None:
        """Change the wanted addresses, and keep what is known. ``own`` are the addresses of the switch."""
        self._ports = {port.id: port for port in ports}
        self._own, self._own_macs = own, {port.mac for port in ports}
        old, self.neighbors = self.neighbors, {}
        for address, target in wanted.items():
            neighbor = old.get(address)
            if neighbor is None or (
                (known := neighbor.resolved) is not None and known.port not in {k.port.name for k in target.links}
            ):
                neighbor = Neighbor(target, now, self._random)
            neighbor.wanted = target
            self.neighbors[address] = neighbor
        self.rejected_of = Counter({a: count for a, count in self.rejected_of.items() if a in self.neighbors})
        self._due = now

    @property
    def known(self) -> dict[IPAddress, Resolved | None]:
        """The neighbors that are resolved, and as None those that have failed.

        About other neighbors nothing is known yet, so the switch may keep what it has.
        """
        return {a: n.resolved for a, n in self.neighbors.items() if n.resolved is not None or n.state is State.FAILED}

    def adopt(self, found: Mapping[IPAddress, Resolved], now: float, *, replace: bool = False) -> None:
        """Take over Ethernet addresses that the switch has; with ``replace``, also instead of known ones."""
        for address, resolved in found.items():
            neighbor = self.neighbors.get(address)
            if neighbor is not None and neighbor.resolved != resolved and (replace or neighbor.resolved is None):
                neighbor.adopt(resolved, now)
        self._due = now

    def doubt(self, now: float) -> None:
        """Begin again with what is known, after a time without messages. Probes spread at `START_RATE`."""
        self._has_answer = False
        for number, neighbor in enumerate(self.neighbors.values()):
            neighbor.doubt(now + number / START_RATE)
        self._due = now

    @property
    def due(self) -> float:
        """The time at which `poll` has something to do."""
        return self._due

    def poll(self, now: float, limit: int) -> list[Request]:
        """Return requests that are due: at most those of ``limit`` neighbors. The others stay due."""
        if now < self._due:
            return []
        requests: list[Request] = []
        self._due = math.inf
        for neighbor in self.neighbors.values():
            if neighbor.due <= now and limit > 0:
                limit -= 1
                requests += neighbor.poll(now, may_fail=self._has_answer)
            self._due = min(self._due, neighbor.due)
        return requests

    def on_message(self, message: Message, now: float) -> Result:
        """Check a message and apply it."""
        kind = Kind(message.kind)
        is_arp = kind <= Kind.ARP_ANNOUNCEMENT
        address: IPAddress = IPv4Address(message.address & 0xFFFFFFFF) if is_arp else IPv6Address(message.address)
        port, mac = self._ports.get(message.port), Mac(message.mac or message.source)
        claim = Resolved(port.name if port is not None else f"port {message.port}", mac)
        if address in self._own:
            return self._reject(Rejection.OWN_ADDRESS, address, claim)
        neighbor = self.neighbors.get(address)
        if neighbor is None:
            return Result(None, address, claim)
        if port is None or port.name not in {link.port.name for link in neighbor.wanted.links}:
            return self._reject(Rejection.PORT, address, claim)
        if mac != message.source:
            return self._reject(Rejection.SOURCE, address, claim)
        if mac == 0 or mac >> 40 & 1 or mac in self._own_macs:
            return self._reject(Rejection.MAC, address, claim)
        if message.mac == 0 and neighbor.resolved is None:
            return Result(Effect.IGNORED, address, claim)  # RFC 4861, 7.2.5: it confirms addresses only
        effect = neighbor.on_message(claim, now, is_answer=kind.is_answer)
        self.conflicts += effect is Effect.CONFLICT
        self._has_answer |= kind.is_answer
        self._due = min(self._due, neighbor.due)
        return Result(effect, address, claim)

    def _reject(self, reason: Rejection, address: IPAddress, claim: Resolved) -> Result:
        self.rejected[reason] += 1
        if address in self.neighbors:
            self.rejected_of[address] += 1
        return Result(reason, address, claim)

    @property
    def states(self) -> Counter[State]:
        """The number of neighbors by state."""
        return Counter(neighbor.state for neighbor in self.neighbors.values())
