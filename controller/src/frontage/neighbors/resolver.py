# SPDX-License-Identifier: Apache-2.0
"""The resolver of one controller: sends the requests of its `Table` through the switch, and reads the answers from digests."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from finsy.proto import p4r

from frontage.config import Config
from frontage.config.links import Links, Resolved
from frontage.fields import IPAddress
from frontage.neighbors.frames import request
from frontage.neighbors.machine import Effect, Request
from frontage.neighbors.table import Kind, Message, Rejection, Result, Table
from frontage.p4.p4info import Schema
from frontage.p4.session import Session

log = logging.getLogger(__name__)

DIGEST = "new_neighbor_t"
"""The digest of ``p4src/control/learning.p4``."""
SEND = 7
"""The operation of a packet-out whose payload is a frame to send: ``PACKET_OUT_SEND`` in ``p4src/include/metadata.p4``."""

_KINDS = frozenset(kind.value for kind in Kind)

MAX_REQUESTS = 64
REQUEST_INTERVAL = 0.02
"""Neighbors that get requests at once, and seconds before the next ones, so that many neighbors do not flood their links."""
MAX_IDLE = 1.0
"""Seconds after which the resolver looks again whether it may run."""
LOG_INTERVAL = 60.0
"""Seconds between two lines about the same address in the log."""


class Resolver:
    """Resolves the wanted addresses of a configuration while its controller is the primary."""

    def __init__(self, config: Config, *, seed: int | None = None):
        self.table = Table(seed)
        self.requests: Counter[str] = Counter()
        """Sent requests by kind: ``unicast`` or ``multicast``."""
        self.version = 0
        """Grows whenever the known Ethernet addresses change."""
        self.config = config
        self._known: dict[IPAddress, Resolved | None] = {}
        self._wake = asyncio.Event()
        self._logged: dict[tuple[IPAddress, object], float] = {}
        self.follow(config)

    def follow(self, config: Config) -> None:
        """Change the configuration."""
        self.config = config
        own = Links(config.ports).own | {vip.address for vip in config.vips} | set(config.site.vtep if config.site else ())
        self.table.follow(config.ports, own, config.wanted, time.monotonic())
        self._update()
        self.wake()

    @property
    def known(self) -> Mapping[IPAddress, Resolved | None]:
        """See `Table.known`."""
        return self._known

    def adopt(self, found: Mapping[IPAddress, Resolved], *, replace: bool) -> None:
        """Take over the Ethernet addresses that the switch has; with ``replace``, also instead of known ones."""
        self.table.adopt(found, time.monotonic(), replace=replace)
        self._known = self.table.known  # not a change: these are installed
        self.wake()

    def wake(self) -> None:
        """Look again whether there is something to do."""
        self._wake.set()

    async def run(self, session: Session, schema: Schema, may_run: Callable[[], bool], changed: Callable[[], None]) -> None:
        """Resolve as long as ``may_run`` says so, and call ``changed`` after changes of `version`. Raises SwitchError."""
        if DIGEST not in schema.digests_by_id.values():
            if self.table.neighbors:
                log.error(
                    "the P4 program does not resolve neighbors, so %d addresses stay unresolved: "
                    "give their Ethernet addresses, or use a program or profile with the digest %s",
                    len(self.table.neighbors), DIGEST,
                )  # fmt: skip
            await asyncio.Event().wait()
        session.signal_digests(DIGEST, self._wake)
        ran = False
        while True:
            self._wake.clear()
            now = time.monotonic()
            runs = may_run()
            if runs:
                if not ran:
                    self.table.doubt(now)
                await self._step(session, schema, now)
                if self._update():
                    changed()
            ran = runs
            delay = MAX_IDLE
            if runs:
                delay = min(MAX_IDLE, max(REQUEST_INTERVAL, self.table.due - time.monotonic()))
            try:
                async with asyncio.timeout(delay):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _step(self, session: Session, schema: Schema, now: float) -> None:
        """Process what has arrived, and send the requests that are due."""
        digests = session.take_digests(DIGEST)
        for fields in digests.messages:
            if fields[0] in _KINDS:
                self._report(self.table.on_message(Message(*fields), now), now)
        await session.acknowledge(digests)
        await session.packet_out(self._frames(schema, self.table.poll(now, MAX_REQUESTS)))

    def _frames(self, schema: Schema, requests: list[Request]) -> Iterator[p4r.PacketOut]:
        for address, port_name, mac in requests:
            for link in self.table.neighbors[address].wanted.links:
                if link.port.name == port_name:
                    frame = request(link.gateway, link.port.mac, address, mac)
                    self.requests["multicast" if mac is None else "unicast"] += 1
                    yield schema.packet_out_of(frame, op=SEND, depth=0, slot=link.port.id, sid=0, score=0)

    def _update(self) -> bool:
        """Return whether the known Ethernet addresses have changed."""
        known = self.table.known
        if known == self._known:
            return False
        for address, found in known.items():
            if address in self._known and self._known[address] == found:
                continue
            if found is None:
                log.warning("neighbor %s does not answer", address)
            else:
                log.info("neighbor %s is %s on port %s", address, found.mac, found.port)
        self._known = known
        self.version += 1
        return True

    def _report(self, result: Result, now: float) -> None:
        """Log what an operator has to know: conflicts and rejected messages."""
        effect, address, claim = result
        if effect is not Effect.CONFLICT and not isinstance(effect, Rejection):
            return
        if now - self._logged.get((address, effect), -LOG_INTERVAL) < LOG_INTERVAL:
            return
        if len(self._logged) > 4096:
            self._logged.clear()
        self._logged[address, effect] = now
        neighbor = self.table.neighbors.get(address)
        if effect is Effect.CONFLICT and neighbor is not None and neighbor.claimant is not None:
            log.warning(
                "neighbor %s: %s on port %s claims the address, but %s still answers and stays: remove one of the two hosts",
                address, neighbor.claimant.mac, neighbor.claimant.port, claim.mac,
            )  # fmt: skip
        elif isinstance(effect, Rejection):
            log.warning("rejected a message of %s on %s about %s: %s", claim.mac, claim.port, address, effect.value)

    def describe(self) -> list[dict[str, Any]]:
        """Return the state of every neighbor, for ``frontage status``."""
        now = time.monotonic()
        described = []
        for address, neighbor in self.table.neighbors.items():
            found, claimant = neighbor.resolved, neighbor.claimant
            described.append(
                {
                    "address": str(address),
                    "port": found.port if found else ", ".join(link.port.name for link in neighbor.wanted.links),
                    "mac": str(found.mac) if found else None,
                    "state": str(neighbor.state),
                    "age": None if neighbor.confirmed is None else round(now - neighbor.confirmed, 3),
                    "conflicts": neighbor.conflicts,
                    "claimant": str(claimant.mac) if claimant else None,
                    "rejected": self.table.rejected_of[address],
                }
            )
        return described
