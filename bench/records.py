# SPDX-License-Identifier: Apache-2.0
"""The record store: operations of both engines on this machine, what a Raft group costs, and what classes of placement cost.

SEED=2 in the environment gives another world of records. Times are wall-clock; nothing here is far away, so they are the engines' own.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

import numpy as np
from nats.js import api

from frontage.mapping.placement.choose import Block, Chooser
from frontage.mapping.placement.values import Parameters, Sites
from frontage_records import embedded
from frontage_records.embedded import Embedded
from frontage_records.grouping import WantedPlacements, group
from frontage_records.jetstream.engine import JetStream
from frontage_records.record import Consistency
from frontage_records.store import Store
from mapping_doors import resident
from rows import Row, finish, row

sys.path.insert(0, str(Path(__file__).parents[1] / "controller" / "records" / "tests"))
from nats_cluster import BINARY, Cluster

VALUE = {"address": "2001:db8:c1::7", "port": 443, "note": "x" * 150}
OPERATIONS, CLIENTS = 500, 64
STREAMS = 200
RECORDS, SITES, LEAST = 100_000, 100, 3
CLASSES = (100, 1000, 5000)


async def one_by_one(operation: Callable[[int], Awaitable[object]]) -> float:
    """Median, in microseconds."""
    took = []
    for i in range(OPERATIONS):
        began = time.perf_counter()
        await operation(i)
        took.append(time.perf_counter() - began)
    return 1e6 * median(took)


async def at_once(operation: Callable[[int], Awaitable[object]]) -> float:
    """Per second, of many clients at different records."""

    async def client(number: int) -> None:
        for i in range(number, 10 * OPERATIONS, CLIENTS):
            await operation(i)

    began = time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(CLIENTS)))
    return 10 * OPERATIONS / (time.perf_counter() - began)


async def operations(name: str, store: Store) -> AsyncIterator[Row]:
    for consistency in Consistency:
        prefix = f"records_{name}_{consistency.replace('-', '_')}"
        guid = f"one-{consistency}"
        await store.put(guid, VALUE, consistency=consistency)
        yield row(f"{prefix}_put", await one_by_one(lambda _, guid=guid: store.put(guid, VALUE)), "us")  # type: ignore[misc]
        yield row(f"{prefix}_get", await one_by_one(lambda _, guid=guid: store.get(guid)), "us")  # type: ignore[misc]
    yield row(f"records_{name}_puts", await at_once(lambda i: store.put(f"many-{i % 1000}", VALUE)), "1/s")
    yield row(f"records_{name}_gets", await at_once(lambda i: store.get(f"many-{i % 1000}")), "1/s")


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[Cluster]:
    servers = Cluster(folder, [[1], [1], [1]])
    servers.start_all()
    try:
        await servers.ready()
        yield servers
    finally:
        servers.stop()


async def groups(servers: Cluster, store: JetStream) -> AsyncIterator[Row]:
    """What a Raft group of three costs each of its servers."""
    before = sum(resident(str(pid)) for pid in servers.pids)
    began = time.perf_counter()
    for i in range(STREAMS):
        config = api.StreamConfig(name=f"cost-{i}", subjects=[f"cost.{i}.*"], num_replicas=3, storage=api.StorageType.FILE)
        await store.connection.retry(lambda config=config: store.connection.context.add_stream(config))  # type: ignore[misc]
    yield row("records_group_creation", 1e3 * (time.perf_counter() - began) / STREAMS, "ms")
    idle = [cpu_seconds(pid) for pid in servers.pids]
    await asyncio.sleep(10)
    busy = sum(cpu_seconds(pid) for pid in servers.pids) - sum(idle)
    after = sum(resident(str(pid)) for pid in servers.pids)
    yield row("records_group_memory", (after - before) / STREAMS / len(servers.pids) / 1e3, "kB")
    yield row("records_group_idle", 1e6 * busy / 10 / STREAMS / len(servers.pids), "us/s")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def placements(seed: int) -> Iterator[Row]:
    """Table 1's workload on a plane: 75 % of a record's requests come from the tenth of the regions around a city. Half of its
    replicas are near, the rest anywhere: by record, as the paper draws them, or alike for all that have the same near ones."""
    random = np.random.default_rng(seed)
    place = random.random((SITES, 2))
    rtt = 2 + 150 * np.linalg.norm(place[:, None] - place[None], axis=2)
    near = np.argsort(rtt, axis=1)
    city = random.integers(0, SITES, RECORDS)
    service = random.random(RECORDS) < 0.1
    reads = random.uniform(0.5, 1.5, RECORDS).astype(np.float32) * np.where(service, np.float32(4.5), np.float32(1))
    writes = np.where(service, 0.0135, random.uniform(0.5, 1.5, RECORDS)).astype(np.float32)
    keys = random.integers(0, 2**64, RECORDS, np.uint64)
    count = np.clip(np.round(LEAST + 3 * reads / writes), LEAST, SITES).astype(np.int64)
    demand = np.full((SITES, SITES), 0.25 / 90)
    np.put_along_axis(demand, near[:, :10], 0.75 / 10, axis=1)

    def wanted(alike: bool) -> WantedPlacements:
        places = Sites.of(np.ones(SITES), rtt)
        chooser = Chooser(places, Parameters(min_replicas=LEAST, nu=0.5, weighed=0, seed=seed, alike=alike))
        sites = np.zeros((RECORDS, SITES), np.bool_)
        for at in range(0, RECORDS, 10_000):
            some = slice(at, at + 10_000)
            requests = np.repeat(np.float32(0.075) * reads[some, None], 10, axis=1)
            sites[some] = chooser.choose(Block(keys[some], count[some], writes[some], near[city[some], :10], requests)).chosen
        return WantedPlacements(sites, city, reads, writes)

    def latency(sites: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> float:
        total = 0.0
        for at in range(0, RECORDS, 1000):
            some = slice(at, at + 1000)
            nearest = np.where(sites[some, None, :], rtt[None], np.inf).min(2)
            total += float((nearest * demand[city[some]]).sum(1) @ reads[some])
        return total / float(reads.sum())

    for name, alike in (("by_record", False), ("alike", True)):
        world = wanted(alike)
        distinct = len(np.unique(np.packbits(world.sites, axis=1), axis=0))
        best, updates = latency(world.sites), float(world.sites.sum(1) @ writes)
        yield row(f"records_{name}_placements", distinct, "placements")
        yield row(f"records_{name}_latency", best, "ms")
        for most in CLASSES:
            began = time.process_time()
            found = group(world, most, LEAST)
            yield row(f"records_{name}_{most}_time", 1e3 * (time.process_time() - began), "ms")
            kept = found.sites[found.group_of]
            yield row(f"records_{name}_{most}_latency", latency(kept), "ms")
            yield row(f"records_{name}_{most}_updates", 100 * float(kept.sum(1) @ writes) / updates, "%")


async def engines() -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "records.db"
        embedded.create(file)
        store: Store = await Embedded.open(file)
        rows += [one async for one in operations("sqlite", store)]
        await store.close()
        if BINARY is None:
            print("no nats-server: without JetStream", file=sys.stderr)
            return rows
        async with cluster(folder) as servers:
            jetstream = await JetStream.open(servers.urls, 1, [1])
            rows += [one async for one in operations("jetstream", jetstream)]
            rows += [one async for one in groups(servers, jetstream)]
            await jetstream.close()
    return rows


def measure() -> list[Row]:
    return [*asyncio.run(engines()), *placements(int(os.environ.get("SEED", "1")))]


if __name__ == "__main__":
    finish(measure)
