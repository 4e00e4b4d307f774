# SPDX-License-Identifier: Apache-2.0
"""The scenario: load from all regions while one failure follows the other."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from frontage_records.errors import NotFoundError, OutcomeUnknownError, RecordError
from frontage_records.jetstream import moves
from frontage_records.jetstream.engine import JetStream
from frontage_records.jetstream.placement_groups import PlacementGroup
from frontage_records.record import REPLACED, Consistency
from frontage_testbed.natsservers import Servers

from .clients import Clients
from .history import Operation, load, violations
from .load import CONTROLLERS, REPLICAS, Name
from .plan import RECOVERY_TIMEOUT, Phase, Plan, Result, StormError, choose
from .servers import Region

MOVED = 9
"""Records that are moved one by one."""


class Storm:
    """One run. `cut` disconnects a site from the others (True) or reconnects it."""

    def __init__(
        self,
        servers: Servers,
        regions: Sequence[Region],
        folder: Path,
        plan: Plan,
        cut: Callable[[int, bool], None] | None,
    ) -> None:
        self._servers = servers
        self._regions = {region.site: region for region in regions}
        self._folder = folder
        self._plan = plan
        self._cut = cut
        self._sites = sorted(self._regions)
        homes = choose(self._sites, plan.records * len(REPLACED))
        kinds = list(REPLACED)
        self._names = [Name(guid, kinds[number % len(kinds)], home) for number, (guid, home) in enumerate(homes.items())]
        self._stores: dict[int, JetStream] = {}
        self.result = Result([], homes)

    async def run(self) -> Result:
        """Run the scenario. Raises StormError, and RecordError if the supercluster does not come up."""
        self._servers.start_all()
        await self._servers.ready()
        for site in self._sites:
            self._stores[site] = await JetStream.open(
                self._servers.near(site), site, self._sites, replicas=REPLICAS, controllers=CONTROLLERS, serves=False
            )
        clients: list[Clients] = []
        try:
            await self._create()
            for site in self._sites:
                clients.append(Clients(self._regions[site], self._servers.near(site), self._folder))
                await clients[-1].start(self._sites, self._names, self._plan)
            await self._phases()
            self.result.counts = {client.site: await client.end() for client in clients}
            self.result.operations += load(client.out for client in clients)
            await self._serve()
            self.result.violations = violations(self.result.operations, await self._agreed())
        finally:
            for client in clients:
                client.kill()
            for store in self._stores.values():
                await store.close()
        return self.result

    async def _serve(self) -> None:
        """Start record servers in place of those that have ended with the clients: they forward what those have left."""
        for site in self._sites:
            await self._stores[site].close()
            self._stores[site] = await JetStream.open(
                self._servers.near(site), site, self._sites, replicas=REPLICAS, controllers=CONTROLLERS
            )

    async def _create(self) -> None:
        """Create each record as clients at its home site do, and the streams that some records will move to, while all regions
        are up.
        """
        for number in range(len(self._sites)):
            await self._stores[self._sites[0]].groups.at(self._rotated(number))
        for name in self._names:
            site = self.result.homes[name.guid]
            begin = time.monotonic_ns()
            value = f"new.{name.guid}"
            # With timestamp 1, so that every eventual write is later.
            stamp = 1 if name.consistency is Consistency.EVENTUAL else None
            made = await self._stores[site].put(name.guid, {"w": value}, consistency=name.consistency, stamp=stamp)
            version, end = made.record.version, time.monotonic_ns()
            self.result.operations.append(Operation(site, name.guid, name.consistency, "put", value, begin, end, version))

    async def _phases(self) -> None:
        first, second, third = self._sites
        await self._phase("quiet", self._hold)
        victim = self._servers.named((await self._status(first)).servers[0])
        await self._failing("node killed", [victim.name])
        await self._failing("region killed", [node.name for node in self._servers.of(second)])
        if self._cut is not None:
            cut = self._cut
            cut(third, True)
            await self._phase("links cut", self._hold)
            cut(third, False)
            await self._phase("links back", self._whole)
        await self._phase("stream moved", self._move_class)
        await self._phase("stream and records moved, node killed", self._move_and_kill)
        await self._phase("quiet again", self._hold)

    async def _phase(self, name: str, body: Callable[[], Awaitable[None]]) -> None:
        begin = time.monotonic_ns()
        await body()
        self.result.phases.append(Phase(name, begin, time.monotonic_ns()))

    async def _hold(self) -> None:
        await asyncio.sleep(self._plan.hold)

    async def _failing(self, name: str, victims: Sequence[str]) -> None:
        for victim in victims:
            self._servers.kill(self._servers.named(victim))
        await self._phase(name, self._hold)
        for victim in victims:
            self._servers.start(self._servers.named(victim))
        await self._phase(f"{name}: back", self._whole)

    async def _whole(self) -> None:
        """Wait until every stream has all its servers, then for a quiet time."""
        missing = ""
        try:
            async with asyncio.timeout(RECOVERY_TIMEOUT):
                for site in self._sites:
                    while missing := await self._missing(site):
                        await asyncio.sleep(0.2)
        except TimeoutError:
            raise StormError(f"not recovered after {RECOVERY_TIMEOUT:.0f} s: {missing}") from None
        await self._hold()

    async def _missing(self, site: int) -> str:
        """Return what the stream of a site lacks; nothing if it is complete."""
        try:
            status = await self._status(site)
        except RecordError as error:
            return f"site {site}: {error}"
        return "" if status.settled else f"site {site}: {status.description}"

    async def _class(self, home: int) -> PlacementGroup:
        guid = next(guid for guid, site in self.result.homes.items() if site == home)
        groups = self._stores[home].groups
        known = await groups.partition(guid, make=False)
        if known is None:
            raise StormError(f"the class of {guid} is gone")
        return await groups.current(known)

    async def _status(self, home: int) -> moves.GroupStatus:
        # The home site is the least likely to be down.
        store = self._stores[home]
        return await moves.group_status(store.connection, await self._class(home))

    async def _move_class(self) -> None:
        home, *others = self._sites
        await self._move(await self._class(home), [*others, home])
        await self._hold()

    async def _move_and_kill(self) -> None:
        """Move the stream back and its records elsewhere one by one, and kill the leader at the same time."""
        home, second, third = self._sites
        group = await self._class(home)
        victim = self._servers.named((await moves.group_status(self._stores[second].connection, group)).servers[0])
        moving = asyncio.create_task(self._move(group, [home, second, third]))
        placing = asyncio.create_task(self._place(random.Random(self._plan.seed).sample(sorted(self.result.homes), MOVED)))
        await asyncio.sleep(0.2)
        self._servers.kill(victim)
        await asyncio.gather(moving, placing)
        self._servers.start(victim)
        await self._whole()

    async def _move(self, group: PlacementGroup, sites: Sequence[int]) -> None:
        store = self._stores[self._sites[1]]
        began = time.monotonic()
        try:
            await moves.move(store.connection, store.groups, group.name, sites, limit=RECOVERY_TIMEOUT)
            what = "done"
        except RecordError as error:
            what = str(error)
        took = time.monotonic() - began
        self.result.moves.append(f"{group.name} to {', '.join(map(str, sites))}: {what} after {took:.1f} s")

    async def _place(self, guids: Sequence[str]) -> None:
        outcomes: Counter[str] = Counter()
        for number, guid in enumerate(guids):
            try:
                async with asyncio.timeout(RECOVERY_TIMEOUT):
                    await self._placed(guid, self._rotated(number % len(self._sites)))
                outcomes["done"] += 1
            except RecordError as error:
                outcomes[error.code] += 1
            except TimeoutError:
                outcomes[OutcomeUnknownError.code] += 1
        self.result.moves.append(f"{len(guids)} records: " + ", ".join(f"{n} {code}" for code, n in outcomes.items()))

    async def _placed(self, guid: str, sites: Sequence[int]) -> None:
        """Move a record, and retry while the outcome is unknown: moving it again is harmless."""
        while True:
            try:
                return await self._stores[self._sites[2]].place(guid, sites)
            except OutcomeUnknownError:
                continue

    def _rotated(self, number: int) -> list[int]:
        return self._sites[number:] + self._sites[:number]

    async def _agreed(self) -> dict[tuple[int, str], Operation]:
        """Return every record as each site reads it, once all sites agree: eventual records converge, mirrors catch up."""
        deadline = time.monotonic() + RECOVERY_TIMEOUT
        while True:
            which = [(site, name) for site in self._sites for name in self._names]
            looks = await asyncio.gather(*(self._look(site, name) for site, name in which))
            found = {(site, name.guid): look for (site, name), look in zip(which, looks, strict=True)}
            states = {name.guid: {found[site, name.guid].version for site in self._sites} for name in self._names}
            forwarded = not any(store.unforwarded for store in self._stores.values())
            agree = all(len(versions) == 1 for versions in states.values())
            if (forwarded and agree) or time.monotonic() > deadline:
                return found
            await asyncio.sleep(0.5)

    async def _look(self, site: int, name: Name) -> Operation:
        begin = time.monotonic_ns()
        try:
            record = await self._stores[site].get(name.guid)
        except NotFoundError:
            return Operation(site, name.guid, name.consistency, "read", None, begin, time.monotonic_ns(), 0)
        value = None if record.value is None else str(record.value["w"])
        return Operation(site, name.guid, name.consistency, "read", value, begin, time.monotonic_ns(), record.version)
