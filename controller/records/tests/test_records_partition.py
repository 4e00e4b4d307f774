# SPDX-License-Identifier: Apache-2.0
"""Eventual records at sites that cannot reach the site that orders their writes: all writes are accepted, and none is lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from conftest import TEST_TIMEOUT
from frontage_records.errors import MergeError, NotFoundError, SizeError
from frontage_records.jetstream.engine import JetStream
from frontage_records.record import Bounds, Consistency
from frontage_records.store import Store
from nats_cluster import Cluster, skip_without_server, supercluster
from records_engines import close_all

SITES = (1, 2, 3)
LOCAL = 3.0
"""Seconds in which a site must accept a write while the record's first site does not answer."""
MERGED = (Consistency.COUNTER, Consistency.SET, Consistency.MAP)


@dataclass
class RecordTestbed:
    servers: Cluster
    stores: dict[int, JetStream] = field(default_factory=dict)

    async def open(self, site: int) -> JetStream:
        self.stores[site] = await JetStream.open(self.servers.near(site), site, SITES, replicas=1)
        return self.stores[site]

    async def create(self, guid: str, consistency: Consistency) -> None:
        """Create a record that site 1 orders, and let the other sites read it."""
        if consistency.merge is None:
            await self.stores[1].put(guid, {"by": 0}, consistency=consistency)
        else:
            first = {Consistency.COUNTER: 0, Consistency.SET: {"add": ["0"]}, Consistency.MAP: 0}[consistency]
            await self.stores[1].update(guid, {"k": first}, consistency=consistency)
        await self.stores[1].place(guid, SITES)
        for store in self.stores.values():
            await store.get(guid)

    async def agreed(self, guid: str) -> dict[str, Any]:
        """Return the document once all sites have forwarded their writes and read the same."""
        async with asyncio.timeout(TEST_TIMEOUT):
            while True:
                found = [await store.get(guid) for store in self.stores.values()]
                if all(one == found[0] for one in found) and not any(store.unforwarded for store in self.stores.values()):
                    assert found[0].value is not None
                    return found[0].value
                await asyncio.sleep(0.1)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    skip_without_server()
    servers = supercluster(tmp_path_factory.mktemp("nats"), nodes=1)
    servers.start_all()
    yield servers
    servers.stop()


@pytest.fixture
async def testbed(servers: Cluster) -> AsyncIterator[RecordTestbed]:
    await servers.ready()
    testbed = RecordTestbed(servers)
    try:
        for site in SITES:
            await testbed.open(site)
        yield testbed
    finally:
        for node in servers.nodes:
            servers.thaw(node)
        await close_all(testbed.stores.values())
        await servers.clear()


async def local(operation: Any) -> Any:
    async with asyncio.timeout(LOCAL):
        return await operation


async def write(store: Store, site: int, rng: random.Random, done: dict[str, Any]) -> None:
    """Make a random update of each record, and note in ``done`` what the final documents must contain."""
    by = f"{site}.{rng.randrange(1 << 30)}"
    written = await local(store.put("eventual", {"by": by}))
    done["eventual"] = max(done.get("eventual", (0, "")), (written.record.stamp, by))
    amount = rng.randrange(1, 10)
    await local(store.update("counter", {"k": amount}))
    done["counter"] = done.get("counter", 0) + amount
    removed = rng.choice(sorted(done["set"][site])) if done["set"][site] and rng.random() < 0.3 else None
    await local(store.update("set", {"k": {"add": [by]} | ({"remove": [removed]} if removed else {})}))
    done["set"][site] = (done["set"][site] | {by}) - {removed}
    written = await local(store.update("map", {f"k{site}": by}))
    assert written.record.value[f"k{site}"] == by, "a writer reads its own writes"
    done["map"][f"k{site}"] = by
    assert by in (await local(store.get("set"))).value["k"]


async def test_sites_write_while_the_ordering_site_does_not_answer(testbed: RecordTestbed) -> None:
    for consistency in (Consistency.EVENTUAL, *MERGED):
        await testbed.create(consistency.value, consistency)
    done: dict[str, Any] = {"set": {site: set() for site in SITES}, "map": {"k": 0}}
    rng = random.Random(1)
    for node in testbed.servers.of(1):
        testbed.servers.freeze(node)
    for _ in range(8):
        await asyncio.gather(*(write(testbed.stores[site], site, rng, done) for site in (2, 3)))
    # A record server that ends leaves what it has not forwarded to its successor.
    await testbed.stores[3].close()
    await testbed.open(3)
    for node in testbed.servers.of(1):
        testbed.servers.thaw(node)
    assert await testbed.agreed("eventual") == {"by": done["eventual"][1]}
    assert await testbed.agreed("counter") == {"k": done["counter"]}
    assert await testbed.agreed("set") == {"k": sorted({"0"}.union(*done["set"].values()))}
    assert await testbed.agreed("map") == done["map"]
    # Updates at the ordering site follow.
    await testbed.stores[1].update("counter", {"k": 1})
    assert await testbed.agreed("counter") == {"k": done["counter"] + 1}


async def test_two_servers_of_a_site_share_its_journal(testbed: RecordTestbed) -> None:
    await testbed.create("counter", Consistency.COUNTER)
    other = await JetStream.open(testbed.servers.near(2), 2, SITES, replicas=1)
    try:
        await other.get("counter")
        await asyncio.gather(*(store.update("counter", {"k": 1}) for store in (testbed.stores[2], other) * 15))
        assert await testbed.agreed("counter") == {"k": 30}
        await asyncio.gather(*(store.update("counter", {"k": 1}) for store in (other, testbed.stores[2]) * 3))
        assert await testbed.agreed("counter") == {"k": 36}
    finally:
        await other.close()


async def test_records_move_during_local_writes(testbed: RecordTestbed) -> None:
    await testbed.create("counter", Consistency.COUNTER)
    done = asyncio.Event()

    async def increment(site: int) -> int:
        number = 0
        while not done.is_set():
            await testbed.stores[site].update("counter", {"k": 1})
            number += 1
        return number

    async with asyncio.TaskGroup() as tasks:
        writers = [tasks.create_task(increment(site)) for site in SITES]
        for sites in ([2, 3], [3, 1], [1, 2, 3], [2, 1]):
            await testbed.stores[1].place("counter", sites)
            await asyncio.sleep(0.2)
        done.set()
    assert await testbed.agreed("counter") == {"k": sum(writer.result() for writer in writers)}


async def test_deletion_wins_over_updates_elsewhere(testbed: RecordTestbed) -> None:
    await testbed.create("set", Consistency.SET)
    for node in testbed.servers.of(1):
        testbed.servers.freeze(node)
    await local(testbed.stores[2].update("set", {"k": {"add": ["a"]}}))
    deleting = asyncio.create_task(testbed.stores[3].delete("set"))
    await asyncio.sleep(0.2)
    for node in testbed.servers.of(1):
        testbed.servers.thaw(node)
    await deleting
    async with asyncio.timeout(TEST_TIMEOUT):
        for store in testbed.stores.values():
            while True:
                try:
                    await store.get("set")
                except NotFoundError:
                    break
                await asyncio.sleep(0.1)
    await testbed.stores[2].update("set", {"k": {"add": ["b"]}}, consistency=Consistency.SET)
    assert await testbed.agreed("set") == {"k": ["b"]}


async def test_wrong_kinds_of_writes_are_rejected_at_every_site(testbed: RecordTestbed) -> None:
    await testbed.create("counter", Consistency.COUNTER)
    await testbed.create("eventual", Consistency.EVENTUAL)
    for store in testbed.stores.values():
        with pytest.raises(MergeError, match="cannot be replaced: use PATCH"):
            await store.put("counter", {"k": 1})
        with pytest.raises(MergeError, match="can only be replaced: use PUT"):
            await store.update("eventual", {"k": 1})
        with pytest.raises(NotFoundError):
            await store.update("missing", {"k": 1})
        store.bounds = Bounds(max_bytes=1 << 20)
    with pytest.raises(SizeError):
        await testbed.stores[2].update("counter", {f"{n}" * 100: 1 for n in range(1000)})
