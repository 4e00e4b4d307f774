"""What real servers send is scheduled by what each of their streams needs still, though all are of one connection."""

import json
from pathlib import Path
from typing import Any

import pytest

from frontage_demo.page.pictures import INDEX, Object
from frontage_demo.page.testbed import PageTestbed
from frontage_testbed.datacentre.addresses import QUIC_PORT, QUIC_VIP6
from frontage_testbed.datacentre.settings import Settings, Treatment
from frontage_testbed.sandbox import Sandbox
from testbeds import Sandboxed, deployment, needs_root

pytestmark = [needs_root, pytest.mark.slow]

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
"""Each real server can send at three quarters of the rate of the way to the client: alone, none has to wait there."""
TRIES = 10
MOST_OF_A_SHORT = SHORT * 8 * 10**6 // SETTINGS.server_rate
"""Microseconds that a short object needs at the rate that real servers assume (RPT)."""


def load(testbed: PageTestbed, objects: list[Object]) -> dict[str, Any]:
    """The page's objects, all asked for at a time on one connection; and what became of packets in the switch."""
    before, sent = testbed.edge.counters(), testbed.packets_by_real_server()
    urls = [f"https://[{QUIC_VIP6}]:{QUIC_PORT}/direct/{path}" for path in (INDEX, *(one.path for one in objects))]
    done = testbed.clients[0].run([testbed.h3_client, "page", *urls, "--insecure", "--paths", "3"])
    after = testbed.edge.counters()
    lines = {line["url"]: line for line in map(json.loads, done.stdout.splitlines())}
    return {
        "ends": [lines[url]["seconds"]["total"] for url in urls[1:]],
        "right": [lines[url]["sha256"] == one.sha256 for url, one in zip(urls[1:], objects, strict=True)],
        "refused": {int(least): n - before.refusals.get(least, 0) for least, n in after.refusals.items()},
        "full": after.drops.get("queue-full", 0) - before.drops.get("queue-full", 0),
        "packets": {name: count - sent[name] for name, count in testbed.packets_by_real_server().items()},
    }


def test_short_objects_go_ahead_of_a_long_one_of_their_connection(tmp_path: Path) -> None:
    found = deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        with found.with_real_servers(PageTestbed, SETTINGS, box) as testbed:
            long, short = (server.name for server in testbed.real_servers)
            objects = [Object(f"{long}/long", bytes(LONG))]
            objects += [Object(f"{short}/{number}", bytes(SHORT)) for number in range(SHORTS)]
            testbed.offer(objects)
            result = {}
            for scheduler in SETTINGS.schedulers:
                testbed.edge.apply(Treatment("cclb4", scheduler))
                testbed.wait_until_ready()
                # While a connection's paths settle, the balancer may answer.
                loads = (load(testbed, objects) for _ in range(TRIES))
                result[scheduler] = next(done for done in loads if all(done["packets"].values()))
            return result

    result = Sandboxed(body, tmp_path).result()
    fifo, aifo = result["fifo"], result["aifo"]
    for done in (fifo, aifo):
        assert all(done["right"]) and all(done["packets"].values()), done
    assert fifo["full"] > 0 == sum(fifo["refused"].values()), "a plain queue drops whatever comes"
    refused = {int(least): count for least, count in aifo["refused"].items()}
    # A band holds what is below twice its least.
    of_short = sum(count for least, count in refused.items() if least < MOST_OF_A_SHORT)
    assert sum(refused.values()) > 0, "the switch knows who needs longest"
    assert 4 * of_short < sum(refused.values()), "it is the long object's packets that are refused"
    long, *shorts = aifo["ends"]
    assert max(shorts) < long, "who was asked for first ends last"
