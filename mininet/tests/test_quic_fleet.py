# SPDX-License-Identifier: Apache-2.0
"""QUIC connections behind three edge switches: none breaks or moves when switches fail, drain, or get another program, and when
servers and keys change.

Half of the clients migrate to their server's cookie address; switches find the others by the connection ids that servers choose.
Short requests begin all the time, so that each change meets handshakes.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from fleets import Outages, compile_with_smaller_trees
from frontage_testbed.datacentre.addresses import ServerAddresses
from frontage_testbed.datacentre.clients import Clients
from frontage_testbed.datacentre.edge import METRICS
from frontage_testbed.datacentre.services import FILMS
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.fleet.addresses import EdgeAddresses
from frontage_testbed.fleet.edges import Edges
from frontage_testbed.fleet.testbed import FleetTestbed
from frontage_testbed.load import workload
from frontage_testbed.load.workload import Arrival
from frontage_testbed.metricsclient import scrape
from frontage_testbed.sandbox import Sandbox
from pacedquic import PACE, PacedTestbed
from quicrounds import wait_until
from testbeds import Sandboxed, Schedule, deployment, needs_root

LONG = "LONG" in os.environ
pytestmark = [needs_root, pytest.mark.slow(seconds=55)]

SETTINGS = Settings(servers=6, policies=("cclb4",), queue_delay=0.1)
SERVERS = [ServerAddresses(i) for i in range(SETTINGS.servers)]
IN_SERVICE, SPARE, TO_DRAIN = SERVERS[:5], SERVERS[5], SERVERS[0]
SWITCHES = 3

DOWNLOADS = 1000 if LONG else 150
OPENING = 6.0 if LONG else 3.0
"""Seconds within which the downloads begin."""
LENGTH = 120.0 if LONG else 38.0
"""Seconds of each download."""
ADD, DRAIN, KILL, RETURN, PROGRAM, ROTATE, LAST = 7.0, 8.0, 9.0, 12.0, 15.0, 20.0, 24.0
"""Earliest times of the actions in seconds."""
LATE = LENGTH - 10.0
"""End of the short requests."""


class QuicFleet(FleetTestbed, PacedTestbed):
    """A testbed in which several edge switches serve the QUIC VIP."""


def make_plan() -> list[Arrival]:
    """Return the downloads, and ten short requests per second."""
    begin = [(OPENING * i / DOWNLOADS, int(LENGTH * PACE)) for i in range(DOWNLOADS)]
    begin += [(OPENING + 0.1 * i, PACE) for i in range(int((LATE - OPENING) * 10))]
    return [Arrival(i, at, i % SETTINGS.clients, size, size, "fin") for i, (at, size) in enumerate(begin)]


def test_quic_connections_survive_changes_of_the_fleet(tmp_path: Path) -> None:
    parts = deployment(SETTINGS)
    plan = make_plan()

    def body(box: Sandbox) -> object:
        plan_file = box.scratch / "plan.csv"
        workload.write_plan(plan, plan_file)
        other = compile_with_smaller_trees(box.scratch)
        edge = Edges(
            [EdgeAddresses(i) for i in range(SWITCHES)],
            parts.switch,
            SETTINGS,
            controller=parts.controller,
            p4info=parts.p4 / "frontage.p4info.txtpb",
            json_file=parts.p4 / "frontage.json",
            directory=box.scratch / "edge",
            services=FILMS[:1],
            in_service=IN_SERVICE,
        )
        with QuicFleet(SETTINGS, box.scratch, edge, parts.quic_agent, parts.h3_client) as testbed:
            testbed.offer_objects(a.wire_size for a in plan)
            testbed.wait_until_ready()
            outages = Outages(edge, testbed.route_through, other)
            packets: dict[str, int] = {}
            schedule = Schedule(
                [
                    (ADD, lambda: edge.add_server(SPARE)),
                    (DRAIN, lambda: edge.drain(TO_DRAIN)),
                    (KILL, outages.kill_one),
                    (RETURN, outages.bring_one_back),
                    (PROGRAM, outages.change_program_of_two),
                    (ROTATE, testbed.rotate_key),
                    (LAST, lambda: packets.update(scrape(METRICS).by("device", "frontage_vip_packets_total"))),
                ]
            )
            clients = Clients(testbed.clients, testbed.generator(plan_file), box.scratch / "clients.log")
            schedule.run(clients)
            begin = clients.start_ns
            wait_until(lambda: len(testbed.logged()) == len(plan), "the servers' logs are complete")
            answers = defaultdict(list)
            for _, client, name in testbed.logged():
                answers[client].append(name)
            addresses = [f"[{client.address6}]" for client in testbed.client_addresses]
            requests = sorted(clients.outcomes, key=lambda o: o.started_ns)
            # An earlier request may have used the same port.
            servers = [answers[f"{addresses[plan[o.index].client]}:{o.local_port}"].pop(0) for o in requests]
        return {
            "outcomes": [
                (o.index, o.outcome, server, (o.started_ns - begin) / 1e9, (o.finished_ns - begin) / 1e9)
                for o, server in zip(requests, servers, strict=True)
            ],
            "packets": packets,
            "ended": schedule.ended,
        }

    result = Sandboxed(body, tmp_path).result()
    outcomes, ended = result["outcomes"], result["ended"]
    print(ended, result["packets"], Counter(o[1] for o in outcomes))
    assert len(outcomes) == len(plan)
    assert Counter(o[1] for o in outcomes if o[0] < DOWNLOADS) == {"ok": DOWNLOADS}
    assert [o for o in outcomes if o[1] != "ok"] == []
    assert ended[str(LAST)] < min(o[4] for o in outcomes if o[0] < DOWNLOADS), "the downloads outlast all actions"
    assert len(result["packets"]) == SWITCHES
    assert all(result["packets"].values()), "each switch serves packets"
    late = [o for o in outcomes if o[0] >= DOWNLOADS and o[3] > ended[str(DRAIN)]]
    assert SPARE.name in {o[2] for o in late}, "the added server gets connections"
    assert TO_DRAIN.name not in {o[2] for o in late}, "the draining server gets no new connections"
