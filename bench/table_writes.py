# SPDX-License-Identifier: Apache-2.0
"""Entries per second that a switch inserts into an exact table over P4Runtime, with one request at a time."""

from __future__ import annotations

import asyncio
import sys
import time
from statistics import median

from finsy.proto import p4r, p4r_grpc

from frontage.p4.entities import BATCH
from frontage.p4.entries import Action, Key
from frontage.p4.session import Session
from rows import NO_PEER, Row, finish, row
from sites import Site, frontage
from switches import DEVICE_ID, Switch, bmv2, softswitch

ENTRIES = 100_000
RUNS = 3
SLOTS = 256
"""Slots of a VIP's Maglev table."""


def requests(site: Site) -> list[p4r.WriteRequest]:
    entries = [(Key("maglev.maglev", divmod(n, SLOTS)), Action("select_server", (n % 4096,))) for n in range(ENTRIES)]
    result = []
    for start in range(0, ENTRIES, BATCH):
        request = p4r.WriteRequest(device_id=DEVICE_ID, election_id=p4r.Uint128(low=1))
        for key, action in entries[start : start + BATCH]:
            entry = site.pipeline.schema.encode(key, action)
            request.updates.add(type=p4r.Update.INSERT).entity.table_entry.CopyFrom(entry)
        result.append(request)
    return result


def rate(switch: Switch, site: Site) -> float:
    """Return the median rate of several runs in entries per second."""
    return median(asyncio.run(insert(switch, site)) for _ in range(RUNS))


async def insert(switch: Switch, site: Site) -> float:
    with switch.running() as running:
        async with Session(running.address, DEVICE_ID) as session:
            await session.take(site.pipeline, 10)
            stub = p4r_grpc.P4RuntimeStub(session.channel)
            writes = requests(site)
            started = time.perf_counter()
            for request in writes:
                await stub.Write(request)
            return ENTRIES / (time.perf_counter() - started)


def measure() -> list[Row]:
    site, peer = frontage(), bmv2()
    ours = rate(softswitch(), site)
    name, theirs = None, None
    if peer is None:
        print(NO_PEER, file=sys.stderr)
    else:
        name, theirs = peer.name, rate(peer, site)
    return [row("table_writes_per_second", ours, "entries/s", name, theirs)]


if __name__ == "__main__":
    finish(measure)
