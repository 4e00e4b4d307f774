# SPDX-License-Identifier: Apache-2.0
"""The lease of the leader: at most one controller writes to the switches.

The lease is a value in the store. Its holder renews it, and measures its validity from the time at which it *sent* the last
successful renewal. The others measure from the time at which they *saw* the last renewal, which is later. The lease therefore
expires at its holder before another controller takes it. The clocks need not be synchronized; they only have to run at about the
same speed.

Each leader has a new number, the term, which is also its election id at the switches (P4Runtime, section 5). A switch that has
seen the next leader rejects writes of the previous one, even those that were in flight when its lease expired.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
import time
from collections.abc import Callable
from typing import Protocol

from frontage.store.errors import OvertakenError, StoreError

log = logging.getLogger(__name__)

KEY = "lease"
_RENEWALS = 5
"""Number of renewals, or of checks of another controller's lease, per lease time."""
_GUARD = 0.25
"""Fraction of the lease that its holder does not use, as a margin for writes in flight and for clocks of different speed."""


def renewal_interval(seconds: float) -> float:
    """Return the time between renewals of a lease, in seconds."""
    return seconds / _RENEWALS


class Keys(Protocol):
    """The operations of the store that the lease needs (`frontage.store.connection.Connection`)."""

    async def get(self, key: str) -> tuple[bytes, int] | None: ...

    async def replace(self, key: str, value: bytes, revision: int, seconds: float) -> int: ...


class Lease:
    """One controller's view of the lease. `run` takes and renews it."""

    def __init__(
        self,
        name: str,
        seconds: float,
        on_change: Callable[[], None],
        *,
        first_term: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ):
        """``name`` is that of the controller. ``on_change`` is called when this controller becomes or ceases to be the leader, or
        gets a new term. ``first_term`` is the term of the first leader in a new store.
        """
        self.name = name
        self.leader: str | None = None
        """The name of the last known leader."""
        self.leader_term = 0
        """The term of the last known leader, or 0."""
        self._seconds = seconds
        self._on_change = on_change
        self._clock = clock
        self._nonce = secrets.token_hex(8)
        self._floor = first_term - 1
        """Lower bound (exclusive) of this controller's term."""
        self._term = 0
        """The term if this controller holds the lease, otherwise 0."""
        self._revision = 0
        self._valid_until = 0.0
        self._paused_until = 0.0
        self._seen_at = 0.0
        """The time at which `_revision` was first seen."""
        self._reported = 0
        """The term at the last call of ``on_change``."""
        self._wake = asyncio.Event()

    @property
    def term(self) -> int | None:
        """The term while this controller may write to the switches; None otherwise."""
        return self._term if self._term and self._clock() < self._valid_until else None

    def exceed(self, term: int) -> None:
        """Use a larger term than ``term``, because a switch has already seen ``term``."""
        if self._floor < term:
            self._floor = term
            self._wake.set()

    async def run(self, keys: Keys) -> None:
        """Take the lease when it is free, and renew it, until cancelled."""
        patience = renewal_interval(self._seconds)
        while True:
            try:
                async with asyncio.timeout(2 * patience):
                    await self.step(keys)
            except (StoreError, TimeoutError) as error:
                log.warning("%s", error or "the store does not answer")
            self.settle()
            wait = max(0.0, min(patience, self._valid_until - self._clock())) if self._term else patience
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()
            self._wake.clear()
            self.settle()

    def settle(self) -> None:
        """Report a change of this controller's leadership or term."""
        if self._term and self.term is None:
            log.warning("the lease has expired: the store did not answer in time")
            self._term = 0
        if self._term != self._reported:
            self._reported = self._term
            self._on_change()

    async def step(self, keys: Keys) -> None:
        """Renew the lease, or take it if it is free. Raises StoreError."""
        if self._term:
            try:
                await self._write(keys, max(self._term, self._floor + 1))
                return
            except OvertakenError:
                pass  # an earlier renewal whose answer was lost, or another leader
        seen = self._clock()
        found = await keys.get(KEY)
        if found is None:
            await self._take(keys, 0)
            return
        value, revision = json.loads(found[0]), found[1]
        is_own = value.get("nonce") == self._nonce
        if revision != self._revision:
            self._revision, self._seen_at = revision, seen
            if is_own and self._term:
                self._term = int(value["term"])
                return  # the next step renews it
            if self._term:
                log.warning("%s has taken the lease", value.get("holder"))
            self._term = 0
            self._follow(value.get("holder"), int(value["term"]))
        is_free = is_own or value.get("holder") is None or seen - self._seen_at > self._seconds
        if not self._term and is_free:
            await self._take(keys, int(value["term"]))

    async def release(self, keys: Keys, pause: float = 0.0) -> None:
        """Release the lease, so that another controller can take it at once, and do not take it for ``pause`` s. Raises StoreError."""
        self._paused_until = self._clock() + pause
        if self._term:
            term, self._term = self._term, 0
            value = json.dumps({"holder": None, "term": term}).encode()
            with contextlib.suppress(OvertakenError):
                await keys.replace(KEY, value, self._revision, renewal_interval(self._seconds))

    async def _take(self, keys: Keys, last_term: int) -> None:
        if self._clock() < self._paused_until:
            return
        with contextlib.suppress(OvertakenError):
            await self._write(keys, max(last_term, self._floor) + 1)
            log.info("this controller is the leader with term %d", self._term)

    async def _write(self, keys: Keys, term: int) -> None:
        """Take or renew the lease with this term. Raises OvertakenError and StoreError, and then keeps the previous term."""
        sent = self._clock()
        value = json.dumps({"holder": self.name, "nonce": self._nonce, "term": term}).encode()
        self._revision = await keys.replace(KEY, value, self._revision, renewal_interval(self._seconds))
        self._term = term
        self._valid_until = sent + self._seconds * (1 - _GUARD)
        self._follow(self.name, term)

    def _follow(self, leader: str | None, term: int) -> None:
        if (leader, term) != (self.leader, self.leader_term):
            self.leader, self.leader_term = leader, term
