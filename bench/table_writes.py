# SPDX-License-Identifier: Apache-2.0
"""Entries per second that a switch inserts into an exact table over P4Runtime, with several requests under way.

With `delay`, the delay of packets beside such a writer, which inserts and deletes entries without a pause. The packets pass
from veth to veth in a network namespace that ends with this process. Runs with and without a writer alternate.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import sys
import time
from collections.abc import Iterator
from statistics import median

import grpc
from finsy.proto import p4r, p4r_grpc

from frontage.p4.entities import BATCH
from frontage.p4.entries import Action, Key
from frontage.p4.session import Session
from rows import NO_PEER, Row, finish, rates, row
from sites import Site, frontage
from switches import DEVICE_ID, Switch, bmv2, softswitch
from veth import FAR_ENDS, INTERFACES, make_links

ENTRIES = 100_000
RUNS = 3
IN_FLIGHT = 4
"""Requests that are under way at the same time, so that client and switch work in parallel."""
SLOTS = 256
"""Slots of a VIP's Maglev table."""
OTHER_VIPS = 100
"""Number of the first VIP whose slots are written beside packets: the packets are for VIPs with smaller numbers."""
DELAYED_RATE = 10_000
"""Packets per second whose delay is measured."""
DELAYED_SECONDS = 10


def requests(site: Site, kind: int = p4r.Update.INSERT, first_vip: int = 0) -> list[p4r.WriteRequest]:
    slots = ((n, first_vip + n // SLOTS, n % SLOTS) for n in range(ENTRIES))
    entries = [(Key("maglev.maglev", (vip, slot)), Action("select_server", (n % 4096,))) for n, vip, slot in slots]
    result = []
    for start in range(0, ENTRIES, BATCH):
        request = p4r.WriteRequest(device_id=DEVICE_ID, election_id=p4r.Uint128(low=1))
        for key, action in entries[start : start + BATCH]:
            entry = site.pipeline.schema.encode(key, action)
            request.updates.add(type=kind).entity.table_entry.CopyFrom(entry)
        result.append(request)
    return result


def rate(switch: Switch, site: Site) -> float:
    """Return the median rate of several runs in entries per second."""
    return median(asyncio.run(insert(switch, site)) for _ in range(RUNS))


async def insert(switch: Switch, site: Site) -> float:
    with switch.running() as running:
        async with Session(running.address, DEVICE_ID) as session:
            await session.take(site.pipeline, 10)
            waiting = iter(requests(site))
            started = time.perf_counter()
            await send(session, waiting)
            return ENTRIES / (time.perf_counter() - started)


async def send(session: Session, waiting: Iterator[p4r.WriteRequest]) -> None:
    """Send the requests, several at the same time."""
    stub = p4r_grpc.P4RuntimeStub(session.channel)

    async def send_next() -> None:
        for request in waiting:
            await stub.Write(request)

    await asyncio.gather(*(send_next() for _ in range(IN_FLIGHT)))


async def delays(site: Site) -> dict[bool, list[dict[str, float]]]:
    """Return the delays of packets in several runs, by whether a writer is beside them."""
    found: dict[bool, list[dict[str, float]]] = {False: [], True: []}
    with softswitch().running(INTERFACES) as running:
        async with Session(running.address, DEVICE_ID) as session:
            await site.install(session)
            kinds = (p4r.Update.INSERT, p4r.Update.DELETE)
            # The requests are made before, so that the writer is as fast as it can be.
            writes = [request for kind in kinds for request in requests(site, kind, OTHER_VIPS)]
            for has_writer in (False, True) * RUNS:
                writing = itertools.cycle(writes) if has_writer else iter(())
                task = asyncio.create_task(send(session, writing))
                found[has_writer].append(await asyncio.to_thread(delays_of_packets, site))
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
                await clear(session, site)
    return found


async def clear(session: Session, site: Site) -> None:
    """Delete the entries that a canceled writer may have left."""
    stub = p4r_grpc.P4RuntimeStub(session.channel)
    for request in requests(site, p4r.Update.DELETE, OTHER_VIPS):
        # Some entries are gone already.
        with contextlib.suppress(grpc.aio.AioRpcError):
            await stub.Write(request)


def delays_of_packets(site: Site) -> dict[str, float]:
    return rates("latency", str(site.write()), str(DELAYED_RATE), str(DELAYED_SECONDS), *FAR_ENDS)


def measure_delay() -> list[Row]:
    make_links()
    found = asyncio.run(delays(frontage()))

    def of(has_writer: bool, percentile: str) -> float:
        return median(run[percentile] for run in found[has_writer])

    return [
        row(f"write_delay_{percentile}", of(True, percentile), "us", "the same without a writer", of(False, percentile))
        for percentile in ("p50", "p99", "p9999", "longest")
    ]


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=("rate", "delay"), default="rate")
    finish(measure_delay if parser.parse_args().what == "delay" else measure)
