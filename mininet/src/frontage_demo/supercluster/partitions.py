# SPDX-License-Identifier: Apache-2.0
"""Partitions: a region is cut off while all regions write eventual records, and every write must survive."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from frontage_records.errors import RecordError
from frontage_records.jetstream.engine import JetStream
from frontage_records.record import Consistency
from frontage_testbed.natsservers import Servers

from .following import agreed
from .load import CONTROLLERS, REPLICAS

SEEDS_PER_CUT = 10
_WARM_UP_TIMEOUT = 60.0
_LONGEST_PAUSE = 0.3
"""Seconds between two writes of a seed at a site, at most."""


@dataclass
class PartitionResult:
    """The results of all seeds."""

    seeds: int = 0
    cuts: int = 0
    writes: int = 0
    """Acknowledged writes during the cuts."""
    at_cut_site: int = 0
    """Those at the region that was cut off."""
    refused: int = 0
    """Writes that were rejected, or whose outcome is unknown, during the cuts."""
    slowest: float = 0.0
    """Longest time in seconds until a write was acknowledged during a cut."""
    convergence: list[float] = field(default_factory=list)
    """Seconds from the end of each cut until all regions read the same."""
    violations: list[str] = field(default_factory=list)


class Partitions:
    """All runs. `cut` disconnects a site from the others (True) or reconnects it."""

    def __init__(self, servers: Servers, sites: Sequence[int], cut: Callable[[int, bool], None]) -> None:
        self._servers = servers
        self._sites = sorted(sites)
        self._cut = cut
        self._stores: dict[int, JetStream] = {}
        self.result = PartitionResult()

    async def run(self, seeds: Sequence[int]) -> PartitionResult:
        """Run all seeds, `SEEDS_PER_CUT` at a time, because mirrors follow only some seconds after a cut.

        Raises RecordError and StormError.
        """
        for site in self._sites:
            self._stores[site] = await JetStream.open(
                self._servers.near(site), site, self._sites, replicas=REPLICAS, controllers=CONTROLLERS
            )
        try:
            for at in range(0, len(seeds), SEEDS_PER_CUT):
                await self._cut_once(seeds[at : at + SEEDS_PER_CUT])
        finally:
            for store in self._stores.values():
                await store.close()
        return self.result

    async def _cut_once(self, seeds: Sequence[int]) -> None:
        rng = random.Random(seeds[0])
        victim, length = rng.choice(self._sites), rng.uniform(0.5, 3.0)
        created = await asyncio.gather(*(self._create(seed, random.Random(seed).choice(self._sites)) for seed in seeds))
        expected = {seed: Expected(guids) for seed, guids in zip(seeds, created, strict=True)}
        guids = [guid for one in expected.values() for guid in one.guids]
        async with asyncio.timeout(_WARM_UP_TIMEOUT):
            await agreed(list(self._stores.values()), guids)
        self._cut(victim, True)
        end = time.monotonic() + length
        writers = [
            self._write(site, random.Random(f"{seed} {site}"), one, end, site == victim)
            for seed, one in expected.items()
            for site in self._sites
        ]
        await asyncio.gather(*writers)
        self._cut(victim, False)
        healed = time.monotonic()
        final = {guid: record.value for guid, record in (await agreed(list(self._stores.values()), guids)).items()}
        self.result.convergence.append(time.monotonic() - healed)
        for seed, one in expected.items():
            self.result.violations += [f"seed {seed}: {what}" for what in one.missing(final)]
        self.result.seeds += len(seeds)
        self.result.cuts += 1

    async def _create(self, seed: int, home: int) -> dict[str, Consistency]:
        """Create a record of each kind at all sites."""
        kinds = (Consistency.EVENTUAL, Consistency.COUNTER, Consistency.SET, Consistency.MAP)
        guids = {f"cut-{seed}-{kind}": kind for kind in kinds}
        order = [home, *(site for site in self._sites if site != home)]
        first: dict[Consistency, Any] = {Consistency.COUNTER: 0, Consistency.SET: {"add": ["0"]}, Consistency.MAP: 0}
        for guid, kind in guids.items():
            if kind.merge is None:
                await self._stores[home].put(guid, {"by": "0"}, consistency=kind)
            else:
                await self._stores[home].update(guid, {"k": first[kind]}, consistency=kind)
            await self._stores[home].place(guid, order)
        return guids

    async def _write(self, site: int, rng: random.Random, expected: Expected, end: float, is_cut: bool) -> None:
        number = 0
        while time.monotonic() < end:
            number += 1
            began = time.monotonic()
            guid, kind = rng.choice(list(expected.guids.items()))
            by = f"{site}.{number}"
            try:
                await self._update(self._stores[site], guid, kind, site, by, rng.randrange(1, 100), expected)
            except RecordError:
                self.result.refused += 1
                expected.unknown.add(guid)
                continue
            self.result.writes += 1
            self.result.at_cut_site += is_cut
            self.result.slowest = max(self.result.slowest, time.monotonic() - began)
            await asyncio.sleep(rng.uniform(0, _LONGEST_PAUSE))

    async def _update(
        self, store: JetStream, guid: str, kind: Consistency, site: int, by: str, amount: int, expected: Expected
    ) -> None:
        if kind is Consistency.EVENTUAL:
            written = await store.put(guid, {"by": by})
            expected.latest = max(expected.latest, (written.record.stamp, by))
        elif kind is Consistency.COUNTER:
            await store.update(guid, {"k": amount})
            expected.sum += amount
        elif kind is Consistency.SET:
            await store.update(guid, {"k": {"add": [by]}})
            expected.members.add(by)
        else:
            await store.update(guid, {f"k{site}": by})
            expected.entries[f"k{site}"] = by


@dataclass
class Expected:
    """The content that the final documents must have."""

    guids: dict[str, Consistency]
    unknown: set[str] = field(default_factory=set)
    """Records with a write that failed or whose outcome is unknown, which may have taken effect."""
    latest: tuple[int, str] = (0, "0")
    sum: int = 0
    members: set[str] = field(default_factory=lambda: {"0"})
    entries: dict[str, object] = field(default_factory=lambda: {"k": 0})

    def missing(self, final: dict[str, Any]) -> list[str]:
        """Return a line for each document that lacks an acknowledged write."""
        found = []
        for guid, kind in self.guids.items():
            document = final[guid]
            exact = {
                Consistency.EVENTUAL: {"by": self.latest[1]},
                Consistency.COUNTER: {"k": self.sum},
                Consistency.SET: {"k": sorted(self.members)},
                Consistency.MAP: self.entries,
            }[kind]
            if document == exact:
                continue
            if guid in self.unknown and self._has_more(kind, document):
                # A write with unknown outcome has taken effect.
                continue
            found.append(f"{guid}: {document}, expected {exact}")
        return found

    def _has_more(self, kind: Consistency, document: dict[str, Any]) -> bool:
        if kind is Consistency.COUNTER:
            return bool(document["k"] > self.sum)
        return kind is Consistency.SET and self.members < set(document["k"])
