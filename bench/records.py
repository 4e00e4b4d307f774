# SPDX-License-Identifier: Apache-2.0
"""The record store: operations of both engines, cost of a Raft group, and cost of placement groups.

Times are wall-clock time. All servers run on this machine, so there is no network latency.
The environment variable SEED selects another random workload.
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
from frontage_records.record import REPLACED
from frontage_records.store import Store
from processes import resident
from rows import Row, finish, row
from seed import SEED

sys.path.insert(0, str(Path(__file__).parents[1] / "controller" / "records" / "tests"))
from nats_cluster import BINARY, Cluster

VALUE = {"address": "2001:db8:c1::7", "port": 443, "note": "x" * 150}
OPERATIONS, CLIENTS = 500, 64
STREAMS = 200
RECORDS, SITES, MIN_REPLICAS = 100_000, 100, 3
MAX_GROUPS = (100, 1000, 5000)


async def one_by_one(operation: Callable[[int], Awaitable[object]]) -> float:
    """Return the median duration of an operation in microseconds."""
    durations = []
    for i in range(OPERATIONS):
        started = time.perf_counter()
        await operation(i)
        durations.append(time.perf_counter() - started)
    return 1e6 * median(durations)


async def concurrently(operation: Callable[[int], Awaitable[object]]) -> float:
    """Return the operations per second of concurrent clients on different records."""

    async def client(number: int) -> None:
        for i in range(number, 10 * OPERATIONS, CLIENTS):
            await operation(i)

    started = time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(CLIENTS)))
    return 10 * OPERATIONS / (time.perf_counter() - started)


async def operations(name: str, store: Store) -> AsyncIterator[Row]:
    """Yield the rows of all operations of an engine."""
    for consistency in REPLACED:
        prefix = f"records_{name}_{consistency.replace('-', '_')}"
        guid = f"one-{consistency}"
        await store.put(guid, VALUE, consistency=consistency)
        yield row(f"{prefix}_put", await one_by_one(lambda _, guid=guid: store.put(guid, VALUE)), "us")  # type: ignore[misc]
        yield row(f"{prefix}_get", await one_by_one(lambda _, guid=guid: store.get(guid)), "us")  # type: ignore[misc]
    yield row(f"records_{name}_puts", await concurrently(lambda i: store.put(f"many-{i % 1000}", VALUE)), "1/s")
    yield row(f"records_{name}_gets", await concurrently(lambda i: store.get(f"many-{i % 1000}")), "1/s")


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[Cluster]:
    """Run three NATS servers until the context ends."""
    servers = Cluster(folder, [[1], [1], [1]])
    servers.start_all()
    try:
        await servers.ready()
        yield servers
    finally:
        servers.stop()


async def groups(servers: Cluster, store: JetStream) -> AsyncIterator[Row]:
    """Yield the cost of a Raft group of three replicas at each of its servers."""
    before = sum(resident(str(pid)) for pid in servers.pids)
    started = time.perf_counter()
    for i in range(STREAMS):
        config = api.StreamConfig(name=f"cost-{i}", subjects=[f"cost.{i}.*"], num_replicas=3, storage=api.StorageType.FILE)
        await store.connection.retry(lambda config=config: store.connection.context.add_stream(config))  # type: ignore[misc]
    yield row("records_group_creation", 1e3 * (time.perf_counter() - started) / STREAMS, "ms")
    before_idle = [cpu_seconds(pid) for pid in servers.pids]
    await asyncio.sleep(10)
    busy = sum(cpu_seconds(pid) for pid in servers.pids) - sum(before_idle)
    after = sum(resident(str(pid)) for pid in servers.pids)
    yield row("records_group_memory", (after - before) / STREAMS / len(servers.pids) / 1e3, "kB")
    yield row("records_group_idle", 1e6 * busy / 10 / STREAMS / len(servers.pids), "us/s")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def placements(seed: int) -> Iterator[Row]:
    """Yield the cost of placement groups for the workload of Auspice's Table 1.

    75 % of a record's requests come from the tenth of the regions around its city.
    Half of its replicas are near the city. The others are at random sites, drawn for each record as in the paper,
    or once for all records with the same near sites (`alike`).
    """
    random = np.random.default_rng(seed)
    locations = random.random((SITES, 2))
    rtt = 2 + 150 * np.linalg.norm(locations[:, None] - locations[None], axis=2)
    near = np.argsort(rtt, axis=1)
    city = random.integers(0, SITES, RECORDS)
    service = random.random(RECORDS) < 0.1
    reads = random.uniform(0.5, 1.5, RECORDS).astype(np.float32) * np.where(service, np.float32(4.5), np.float32(1))
    writes = np.where(service, 0.0135, random.uniform(0.5, 1.5, RECORDS)).astype(np.float32)
    keys = random.integers(0, 2**64, RECORDS, np.uint64)
    count = np.clip(np.round(MIN_REPLICAS + 3 * reads / writes), MIN_REPLICAS, SITES).astype(np.int64)
    demand = np.full((SITES, SITES), 0.25 / 90)
    np.put_along_axis(demand, near[:, :10], 0.75 / 10, axis=1)

    def wanted(alike: bool) -> WantedPlacements:
        all_sites = Sites.of(np.ones(SITES), rtt)
        chooser = Chooser(all_sites, Parameters(min_replicas=MIN_REPLICAS, nu=0.5, weighed=0, seed=seed, alike=alike))
        sites = np.zeros((RECORDS, SITES), np.bool_)
        for start in range(0, RECORDS, 10_000):
            batch = slice(start, start + 10_000)
            requests = np.repeat(np.float32(0.075) * reads[batch, None], 10, axis=1)
            sites[batch] = chooser.choose(Block(keys[batch], count[batch], writes[batch], near[city[batch], :10], requests)).chosen
        return WantedPlacements(sites, city, reads, writes)

    def latency(sites: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> float:
        total = 0.0
        for start in range(0, RECORDS, 1000):
            batch = slice(start, start + 1000)
            nearest = np.where(sites[batch, None, :], rtt[None], np.inf).min(2)
            total += float((nearest * demand[city[batch]]).sum(1) @ reads[batch])
        return total / float(reads.sum())

    for name, alike in (("by_record", False), ("alike", True)):
        placed = wanted(alike)
        distinct = len(np.unique(np.packbits(placed.sites, axis=1), axis=0))
        best, updates = latency(placed.sites), float(placed.sites.sum(1) @ writes)
        yield row(f"records_{name}_placements", distinct, "placements")
        yield row(f"records_{name}_latency", best, "ms")
        for max_groups in MAX_GROUPS:
            started = time.process_time()
            grouping = group(placed, max_groups, MIN_REPLICAS)
            yield row(f"records_{name}_{max_groups}_time", 1e3 * (time.process_time() - started), "ms")
            kept = grouping.sites[grouping.group_of]
            yield row(f"records_{name}_{max_groups}_latency", latency(kept), "ms")
            yield row(f"records_{name}_{max_groups}_updates", 100 * float(kept.sum(1) @ writes) / updates, "%")


async def engines() -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "records.db"
        embedded.create(file)
        store: Store = await Embedded.open(file)
        rows += [entry async for entry in operations("sqlite", store)]
        await store.close()
        if BINARY is None:
            print("nats-server is missing, so the rows of JetStream are left out: run `make setup`", file=sys.stderr)
            return rows
        async with cluster(folder) as servers:
            jetstream = await JetStream.open(servers.urls, 1, [1])
            rows += [entry async for entry in operations("jetstream", jetstream)]
            rows += [entry async for entry in groups(servers, jetstream)]
            await jetstream.close()
    return rows


def measure() -> list[Row]:
    return [*asyncio.run(engines()), *placements(SEED)]


if __name__ == "__main__":
    finish(measure)
