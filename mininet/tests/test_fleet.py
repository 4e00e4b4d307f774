# SPDX-License-Identifier: Apache-2.0
"""Per-connection consistency behind three edge switches: connections neither break nor move when switches fail, drain, or get
another program, and when servers and keys change.

The two directions of most connections pass through different switches, and each change of the routes moves many connections to
another switch.
"""

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from frontage_testbed.datacentre.addresses import VIP4, VIP6, ServerAddresses
from frontage_testbed.datacentre.clients import Clients, over_tcp
from frontage_testbed.datacentre.edge import METRICS
from frontage_testbed.datacentre.servers import PACE, PACED
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.fleet.testbed import fleet_testbed
from frontage_testbed.load import workload
from frontage_testbed.load.workload import Arrival
from frontage_testbed.metricsclient import scrape
from frontage_testbed.programs import REPOSITORY
from frontage_testbed.sandbox import Sandbox
from testbeds import Sandboxed, Schedule, deployment, needs_root, network_counters

pytestmark = [needs_root, pytest.mark.slow(seconds=150)]

SETTINGS = Settings(servers=8, policies=("cclb4",), queue_delay=0.1)
SERVERS = [ServerAddresses(i) for i in range(SETTINGS.servers)]
IN_SERVICE, SPARE, TO_DRAIN = SERVERS[:6], SERVERS[6:], SERVERS[:2]
SWITCHES = 3

DOWNLOADS = 1000 if "LONG" in os.environ else 250
OPENING = 4.0
"""Seconds within which the downloads begin."""
LENGTH = 140.0
"""Seconds of each download. On a busy machine, the actions take most of it."""
KILL, RETURN, PROGRAM, LAST = 16.0, 22.0, 26.0, 38.0
"""Earliest times of the actions in seconds."""
LATE = 135.0
"""End of the short requests that show the assignment of new connections."""


def make_plan() -> list[Arrival]:
    """Return the downloads, followed by ten short requests per second."""
    begin = [(OPENING * i / DOWNLOADS, int(LENGTH * PACE)) for i in range(DOWNLOADS)]
    begin += [(OPENING + 0.1 * i, 10_000) for i in range(int((LATE - OPENING) * 10))]
    return [Arrival(i, at, i % SETTINGS.clients, size, size, "idle") for i, (at, size) in enumerate(begin)]


def compile_with_smaller_trees(directory: Path) -> tuple[Path, Path]:
    """Return the P4Info and the JSON of a program that differs from the installed one."""
    p4info, json = directory / "other.p4info.txtpb", directory / "other.json"
    source = REPOSITORY / "p4src" / "v1model" / "frontage.p4"
    compiler = REPOSITORY / "target" / "release" / "softswitch-p4c"
    command = [compiler, "-DTREE_LEVELS=10", source, "-o", json, "--p4runtime-files", p4info]
    subprocess.run(command, check=True, timeout=60)
    return p4info, json


only_long = pytest.mark.skipif("LONG" not in os.environ, reason="part of `make test-long`")


@pytest.mark.parametrize("vip", [pytest.param(VIP4, id="IPv4"), pytest.param(VIP6, id="IPv6", marks=only_long)])
def test_connections_survive_changes_of_the_fleet(tmp_path: Path, vip: str) -> None:
    parts = deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        plan = make_plan()
        plan_file = box.scratch / "plan.csv"
        workload.write_plan(plan, plan_file)
        other = compile_with_smaller_trees(box.scratch)
        with fleet_testbed(parts, SETTINGS, box, SWITCHES, in_service=IN_SERVICE) as testbed:
            testbed.offer_objects(a.wire_size for a in plan)
            testbed.wait_until_ready()
            edge = testbed.edge
            one, two, three = edge.edges

            def kill_one() -> None:
                edge.kill_one(one)
                testbed.route_through([two, three])

            def bring_one_back() -> None:
                edge.start_one(one)
                edge.wait_until_installed()
                testbed.route_through([one, two, three])

            def change_program_of_two() -> None:
                testbed.route_through([one, three])
                edge.set_program(two, *other)
                testbed.route_through([one, two, three])

            resets: list[int] = []
            packets: dict[str, int] = {}

            def read_counters() -> None:
                resets.extend(network_counters(h)["Tcp.OutRsts"] for h in testbed.servers.values())
                packets.update(scrape(METRICS).by("device", "frontage_vip_packets_total"))

            schedule = Schedule(
                [
                    *((5.0, lambda s=s: edge.add_server(s)) for s in SPARE),
                    *((10.0, lambda s=s: edge.drain(s)) for s in TO_DRAIN),
                    (KILL, kill_one),
                    (RETURN, bring_one_back),
                    (PROGRAM, change_program_of_two),
                    (34.0, edge.rotate_key),
                    (LAST, read_counters),
                ]
            )
            clients = Clients(testbed.clients, over_tcp(plan_file, vip, PACED), box.scratch / "clients.log")
            schedule.run(clients)
        return {
            "outcomes": [(o.index, o.outcome, o.server, (o.started_ns - clients.start_ns) / 1e9) for o in clients.outcomes],
            "resets": resets,
            "packets": packets,
            "ended": schedule.ended,
        }

    result = Sandboxed(body, tmp_path).result()
    outcomes = result["outcomes"]
    print(result["ended"], result["packets"])
    assert len(outcomes) == len(make_plan())
    assert Counter(o[1] for o in outcomes if o[0] < DOWNLOADS) == {"ok": DOWNLOADS}
    assert [o for o in outcomes if o[1] != "ok"] == []
    assert result["ended"][str(LAST)] < LENGTH, "the resets are counted before the first download ends"
    # A server resets connections that it does not know, so no packet reached another server.
    assert result["resets"] == [0] * SETTINGS.servers
    assert len(result["packets"]) == SWITCHES
    assert all(result["packets"].values()), "each switch serves packets"
    late = [o for o in outcomes if o[0] >= DOWNLOADS]
    spare, drained = {s.name for s in SPARE}, {s.name for s in TO_DRAIN}
    assert spare <= {o[2] for o in late}, "added servers get connections"
    assert not drained & {o[2] for o in late if o[3] > result["ended"]["10.0"]}, "draining servers get no new connections"
