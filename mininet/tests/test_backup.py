# SPDX-License-Identifier: Apache-2.0
"""Connections do not notice that a controller is restored from a backup in another place."""

from pathlib import Path

import pytest

from frontage_testbed.datacentre.addresses import VIP4, ServerAddresses
from frontage_testbed.datacentre.clients import Clients, over_tcp
from frontage_testbed.datacentre.servers import PACE, PACED
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.load import workload
from frontage_testbed.load.workload import Arrival
from frontage_testbed.sandbox import Sandbox
from testbeds import Sandboxed, Schedule, deployment, needs_root, network_counters, only_long

pytestmark = [needs_root, only_long, pytest.mark.slow(seconds=70), pytest.mark.timeout(300)]

SETTINGS = Settings(servers=4, policies=("cclb4",), queue_delay=0.1)
SERVERS = [ServerAddresses(i) for i in range(SETTINGS.servers)]
DOWNLOADS = 200
OPENING = 2.0
LENGTH = 50.0
"""Seconds of each download."""
RESTORED, LAST = 8.0, 12.0
"""Earliest times of actions in seconds."""


def make_plan() -> list[Arrival]:
    """Return downloads that outlast all actions, and short requests that show the assignment of new connections."""
    begin = [(OPENING * i / DOWNLOADS, int(LENGTH * PACE)) for i in range(DOWNLOADS)]
    begin += [(OPENING + 0.2 * i, 10_000) for i in range(int((LENGTH - OPENING) * 5))]
    return [Arrival(i, at, i % SETTINGS.clients, size, size, "idle") for i, (at, size) in enumerate(begin)]


def test_downloads_live_over_backup_and_restoration(tmp_path: Path) -> None:
    parts = deployment(SETTINGS)

    def body(box: Sandbox) -> object:
        plan = make_plan()
        plan_file = box.scratch / "plan.csv"
        workload.write_plan(plan, plan_file)
        with parts.testbed(SETTINGS, box, in_service=SERVERS[:3]) as testbed:
            testbed.offer_objects(a.wire_size for a in plan)
            testbed.wait_until_ready()
            edge = testbed.edge
            backup, passphrase, other = box.scratch / "backup", box.scratch / "passphrase", box.scratch / "other"
            passphrase.write_text("correct horse battery staple")
            before: list[str] = []

            def back_up() -> None:
                edge.frontage("backup", str(backup), "--passphrase-file", str(passphrase))
                before.append(edge.frontage("history"))

            def restore() -> None:
                edge.stop_controller()
                other.mkdir()
                edge.config.rename(box.scratch / "lost.yaml")
                edge.config = other / edge.config.name
                edge.frontage("restore", str(backup), "--passphrase-file", str(passphrase))
                edge.start_controller()
                edge.wait_until_installed()

            resets: list[int] = []
            schedule = Schedule(
                [
                    (3.0, edge.rotate_key),
                    (4.0, lambda: edge.drain(SERVERS[0])),
                    (5.0, back_up),
                    (6.0, restore),
                    (RESTORED, lambda: edge.add_server(SERVERS[3])),
                    (LAST, lambda: resets.extend(network_counters(h)["Tcp.OutRsts"] for h in testbed.servers.values())),
                ]
            )
            clients = Clients(testbed.clients, over_tcp(plan_file, VIP4, PACED), box.scratch / "clients.log")
            schedule.run(clients)
            history = edge.frontage("history")
        return {
            "outcomes": [(o.index, o.outcome, o.server, (o.started_ns - clients.start_ns) / 1e9) for o in clients.outcomes],
            "resets": resets,
            "restored": schedule.ended[6.0],
            "ended": schedule.ended[LAST],
            "before": before[0],
            "after": history,
        }

    result = Sandboxed(body, tmp_path).result()
    outcomes = result["outcomes"]
    assert len(outcomes) == len(make_plan())
    assert [o for o in outcomes if o[1] != "ok"] == []
    assert result["ended"] < LENGTH, "all actions end while the downloads run"
    # A server resets connections that it does not know, so no packet reached another server.
    assert result["resets"] == [0] * SETTINGS.servers
    late = {o[2] for o in outcomes if o[0] >= DOWNLOADS and o[3] > result["ended"]}
    assert "s4" in late, "the restored controller adds a server"
    assert "s1" not in late, "the server stays drained"
    assert "rotate-key" in result["before"]
    assert "rotate-key" in result["after"]
    assert "add-server" in result["after"]
    assert "add-server" not in result["before"]
