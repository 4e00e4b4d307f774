# SPDX-License-Identifier: Apache-2.0
"""AIFO schedules real servers' packets by the remaining bytes of each stream, although all belong to one connection."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from frontage_demo.page.pictures import INDEX, Object
from frontage_demo.page.testbed import PageTestbed
from frontage_testbed.datacentre.addresses import QUIC_PORT, QUIC_VIP6
from frontage_testbed.datacentre.settings import Settings, Treatment
from frontage_testbed.sandbox import Sandbox
from testbeds import Sandboxed, deployment, needs_root

pytestmark = [needs_root, pytest.mark.slow(seconds=10)]

SHORT, SHORTS = 40_000, 30
LONG = 2_500_000
SETTINGS = Settings(
    servers=3,
    clients=1,
    policies=("cclb4",),
    schedulers=("fifo", "aifo"),
    bottleneck_rate=16_000_000,
    server_headroom=2.25,
)
"""Each real server can send at three quarters of the client link's rate: alone, it causes no queue."""
TRIES = 10
FEW = 20
"""Drops of the long object for one of the short ones. A third of all bytes are the short objects'."""
MOST_OF_A_SHORT = SHORT * 8 * 10**6 // SETTINGS.server_rate
"""Microseconds that a short object takes at the rate that real servers assume (RPT)."""


def refused(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return the packets that AIFO dropped between two readings, by the object that they belong to."""
    counts = {"short": 0, "long": 0}
    for least, count in after.items():
        # A band ends at twice its minimum.
        counts["short" if int(least) < MOST_OF_A_SHORT else "long"] += count - before.get(least, 0)
    return counts


def load(testbed: PageTestbed, objects: list[Object]) -> dict[str, Any]:
    """Request all objects of the page at once on one connection, and return results and the switch's counters."""
    before, sent = testbed.edge.counters(), testbed.packets_by_real_server()
    urls = [f"https://[{QUIC_VIP6}]:{QUIC_PORT}/direct/{path}" for path in (INDEX, *(item.path for item in objects))]
    done = testbed.clients[0].run([testbed.h3_client, "page", *urls, "--insecure", "--paths", "3"])
    after = testbed.edge.counters()
    lines = {line["url"]: line for line in map(json.loads, done.stdout.splitlines())}
    return {
        "ends": [lines[url]["seconds"]["total"] for url in urls[1:]],
        "right": [lines[url]["sha256"] == item.sha256 for url, item in zip(urls[1:], objects, strict=True)],
        "refused": refused(before.refusals, after.refusals),
        "full": after.drops.get("tail-drop", 0) - before.drops.get("tail-drop", 0),
        "packets": {name: count - sent[name] for name, count in testbed.packets_by_real_server().items()},
    }


def undisturbed_load(testbed: PageTestbed, objects: list[Object]) -> dict[str, Any]:
    """Return the first load in which both real servers send, and almost all of AIFO's drops are of the long object.

    While paths are established, the balancer may answer. Where the machine is busy, short objects may arrive in bursts that fill
    the queue without the long one. If no load is as expected, return the last one.
    """
    for _ in range(TRIES):
        done = load(testbed, objects)
        if all(done["packets"].values()) and FEW * done["refused"]["short"] <= done["refused"]["long"]:
            break
    return done


def test_short_streams_overtake_a_long_stream_of_their_connection(tmp_path: Path) -> None:
    parts = deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        with parts.with_real_servers(PageTestbed, SETTINGS, box) as testbed:
            long, short = (server.name for server in testbed.real_servers)
            objects = [Object(f"{long}/long", bytes(LONG))]
            objects += [Object(f"{short}/{number}", bytes(SHORT)) for number in range(SHORTS)]
            testbed.offer(objects)
            result = {}
            for scheduler in SETTINGS.schedulers:
                testbed.edge.apply(Treatment("cclb4", scheduler))
                testbed.wait_until_ready()
                result[scheduler] = undisturbed_load(testbed, objects)
            return result

    result = Sandboxed(body, tmp_path).result()
    fifo, aifo = result["fifo"], result["aifo"]
    for done in (fifo, aifo):
        assert all(done["right"]) and all(done["packets"].values()), done
    assert fifo["full"] > 0 == sum(fifo["refused"].values()), "FIFO drops regardless of rank"
    assert aifo["refused"]["long"] > 0, "the switch knows the remaining times"
    assert FEW * aifo["refused"]["short"] <= aifo["refused"]["long"], "AIFO drops packets of the long object"
    long, *shorts = aifo["ends"]
    assert max(shorts) < long, "the object requested first ends last"
