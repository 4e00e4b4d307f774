# SPDX-License-Identifier: Apache-2.0
"""Per-connection consistency over TCP: connections neither break nor move when servers, policies, keys, controller or
switch change.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from frontage_testbed.datacentre.addresses import VIP4, VIP6, ServerAddresses
from frontage_testbed.datacentre.clients import Clients, over_tcp
from frontage_testbed.datacentre.servers import PACE, PACED
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.load import workload
from frontage_testbed.load.workload import Arrival
from frontage_testbed.sandbox import Sandbox
from testbeds import Sandboxed, Schedule, deployment, needs_root, network_counters, only_long

pytestmark = [needs_root, pytest.mark.slow(seconds=148)]

SETTINGS = Settings(servers=8, policies=("cclb4",), queue_delay=0.1)
TWO_PIPES = replace(SETTINGS, target="tna", pipes=2)
"""Clients are behind the first pipe, and every other server behind the second."""
SERVERS = [ServerAddresses(i) for i in range(SETTINGS.servers)]
IN_SERVICE, SPARE, TO_DRAIN = SERVERS[:6], SERVERS[6:], SERVERS[:2]

DOWNLOADS = 1000
OPENING = 4.0
"""Seconds within which the downloads begin."""
LENGTH = 140.0
"""Seconds of each download. On a busy machine, the actions take most of it."""
ADD, DRAIN, RESTART = 5.0, 9.0, 25.0
LAST = 31.0
"""Earliest times of the actions in seconds."""
LATE = 135.0
"""End of the short requests that show the assignment of new connections."""


def make_plan() -> list[Arrival]:
    """Return the downloads, followed by ten short requests per second that show the assignment of new connections."""
    begin = [(OPENING * i / DOWNLOADS, int(LENGTH * PACE)) for i in range(DOWNLOADS)]
    begin += [(OPENING + 0.1 * i, 10_000) for i in range(int((LATE - OPENING) * 10))]
    # No client closes before the end: a late segment of a closed connection would also be answered with a reset.
    return [Arrival(i, at, i % SETTINGS.clients, size, size, "idle") for i, (at, size) in enumerate(begin)]


@pytest.mark.parametrize(
    ("settings", "vip"),
    [
        pytest.param(SETTINGS, VIP4, id="IPv4", marks=only_long),
        pytest.param(SETTINGS, VIP6, id="IPv6"),
        pytest.param(TWO_PIPES, VIP4, id="two pipes of Tofino", marks=only_long),
    ],
)
def test_established_connections_keep_their_server(tmp_path: Path, settings: Settings, vip: str) -> None:
    parts = deployment(settings)

    def body(box: Sandbox) -> object:
        plan = make_plan()
        plan_file = box.scratch / "plan.csv"
        workload.write_plan(plan, plan_file)
        with parts.testbed(settings, box, in_service=IN_SERVICE) as testbed:
            testbed.offer_objects(a.wire_size for a in plan)
            testbed.wait_until_ready()
            edge = testbed.edge

            def restart_controller() -> None:
                edge.stop_controller()
                edge.start_controller()

            def restart_switch() -> None:
                edge.stop_switch()
                edge.start_switch()

            resets: list[int] = []
            schedule = Schedule(
                [
                    *((ADD, lambda s=s: edge.add_server(s)) for s in SPARE),
                    *((DRAIN, lambda s=s: edge.drain(s)) for s in TO_DRAIN),
                    *((13.0 + 0.5 * i, lambda p=p: edge.change_policy(p)) for i, p in enumerate(("hash", "cheetah-ll", "cclb4"))),
                    (17.0, edge.rotate_key),
                    (20.0, restart_controller),
                    (RESTART, restart_switch),
                    (LAST, lambda: resets.extend(network_counters(h)["Tcp.OutRsts"] for h in testbed.servers.values())),
                ]
            )
            clients = Clients(testbed.clients, over_tcp(plan_file, vip, PACED), box.scratch / "clients.log")

            schedule.run(clients)
        return {
            "outcomes": [(o.index, o.outcome, o.server, (o.started_ns - clients.start_ns) / 1e9) for o in clients.outcomes],
            "early": [o.server for o in clients.outcomes if o.connected_ns < clients.start_ns + ADD * 1e9],
            "resets": resets,
            "drained": schedule.ended[DRAIN],
            "restarted": schedule.ended[RESTART],
            "ended": schedule.ended[LAST],
        }

    result = Sandboxed(body, tmp_path).result()
    outcomes = result["outcomes"]
    assert len(outcomes) == len(make_plan())
    assert [o for o in outcomes if o[1] != "ok"] == []
    # Servers also reset closed connections.
    assert result["ended"] < LENGTH, "the resets are counted before the first download ends"
    # A server resets connections that it does not know, so no packet reached another server.
    assert result["resets"] == [0] * SETTINGS.servers

    late = [o for o in outcomes if o[0] >= DOWNLOADS]
    spare, drained = {s.name for s in SPARE}, {s.name for s in TO_DRAIN}
    assert not spare & set(result["early"]), "early connections are on the initial servers"
    assert spare <= {o[2] for o in late}, "added servers get connections"
    assert drained & {o[2] for o in outcomes if o[3] < DRAIN}
    assert not drained & {o[2] for o in late if o[3] > result["drained"]}, "draining servers get no new connections"
    assert [o for o in late if o[3] > result["restarted"]], "the restarted switch assigns new connections"
