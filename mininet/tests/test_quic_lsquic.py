# SPDX-License-Identifier: Apache-2.0
"""QUIC servers on lsquic: third-party clients are found by cookie and connection ID, see no other address, and keep their server
while keys rotate, clients move, servers are added and drained, and the switch restarts.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frontage_testbed.datacentre.addresses import COOKIE_PREFIX, QUIC_VIP4, ServerAddresses
from frontage_testbed.datacentre.clients import Clients
from frontage_testbed.datacentre.lsquic import LsquicTestbed
from frontage_testbed.datacentre.services import FILMS
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.datacentre.topology import INTERNET
from frontage_testbed.load import workload
from frontage_testbed.load.workload import Arrival
from frontage_testbed.sandbox import Sandbox
from nat import Nat, choose_ports
from quicclients import Client
from quicrounds import BROKEN, SIZE, Rounds, drops, from_new_ports, limit, wait_until
from testbeds import Sandboxed, Schedule, deployment, needs_root

pytestmark = [needs_root, pytest.mark.slow(seconds=50)]

SETTINGS = Settings(servers=3, server="lsquic", policies=("cclb4",), bottleneck_rate=48_000_000, queue_delay=0.1)
CLIENTS = (
    Client("gtlsclient", follows=True),
    Client("aioquic", follows=True),
    Client("curl", follows=False),
    Client("curl", follows=False, vip=QUIC_VIP4),
    Client("gtlsclient", follows=False, options=("--no-preferred-addr",)),
    Client("gtlsclient", follows=True, options=("--change-local-addr=500ms",)),
)
MIGRATES, REMAPPED, AFTERWARDS = CLIENTS[5], CLIENTS[:5], (CLIENTS[1], CLIENTS[2])
ACCESS, BUFFER = 16_000_000, 8_000_000
"""Rate (bit/s) and queue (bytes) of a client's link, which is the bottleneck and loses nothing."""


def is_found_as_expected(client: Client, done: dict[str, Any]) -> bool:
    """Return whether the switch found the server by the client's cookie address or by its connection ID."""
    address, cid = done["steering"].get("retrieved-address", 0), done["steering"].get("retrieved-cid", 0)
    return address > cid if client.follows else (address == 0 and cid > 100)


def check(client: Client, done: dict[str, Any]) -> None:
    assert (done["status"], done["right"]) == (0, True), (client, done)
    assert done["wrong"] == [], (client, done)


def test_clients_are_found_masked_and_move(tmp_path: Path) -> None:
    settings = replace(SETTINGS, clients=len(CLIENTS))
    parts = deployment(settings)
    if missing := {client.missing for client in CLIENTS} - {None}:
        pytest.skip(f"missing HTTP/3 clients: {', '.join(sorted(missing))}")

    def body(box: Sandbox) -> object:
        with parts.quic_testbed(settings, box) as testbed:
            testbed.offer_objects([SIZE])
            testbed.wait_until_ready()
            for host in testbed.clients.values():
                choose_ports(host)
            limit(testbed, ACCESS, BUFFER)
            rounds = Rounds(testbed, CLIENTS)
            nat = Nat(testbed.network[INTERNET])

            def remapped(client: Client, packets: str) -> dict[str, Any]:
                done = rounds.alone(client, lambda: nat.start(packets))
                return done | {"passed": nat.stop()}

            nat.start(f"ip6 daddr {COOKIE_PREFIX}")
            by_destination = rounds.alone(CLIENTS[0]) | {"passed": nat.stop()}
            return {
                "by destination": by_destination,
                "remapped": [remapped(client, "") for client in REMAPPED],
                "migrated": rounds.alone(MIGRATES),
                "rotation": {"downloads": rounds.meanwhile(testbed.rotate_key), "drops": drops(testbed)},
                "after rotation": [rounds.alone(client) for client in AFTERWARDS],
            }

    result = Sandboxed(body, tmp_path).result()
    alone = [(CLIENTS[0], result["by destination"]), (MIGRATES, result["migrated"])]
    alone += zip(REMAPPED, result["remapped"], strict=True)
    alone += zip(AFTERWARDS, result["after rotation"], strict=True)
    for client, done in alone:
        check(client, done)
        assert is_found_as_expected(client, done), (client, done)
        assert len(done["servers"]) == 1, (client, done)
        assert not BROKEN & {name for name, count in done["drops"].items() if count}, (client, done)
        if "passed" in done:
            assert len(done["sources"]) == 1 and done["passed"] > SIZE / 3000, (client, done, "packets go to another port")
    assert len(result["migrated"]["sources"]) == 2, "the client changed its port"
    for client, done in zip(CLIENTS, result["rotation"]["downloads"], strict=True):
        check(client, done)
    assert not BROKEN & result["rotation"]["drops"].keys(), result["rotation"]["drops"]


PACE = 2_000
"""Bytes per second of each response."""
COUNT = 200
OPENING, LENGTH = 2.0, 54.0
"""Seconds within which the downloads begin, and minimum duration of each."""
ADD, DRAIN, ROTATE, RESTART = 3.0, 5.0, 7.0, 9.0
"""Earliest times of the actions in seconds."""


def make_plan() -> list[Arrival]:
    """Return the downloads, and ten short requests per second in parallel."""
    begin = [(OPENING * i / COUNT, int(LENGTH * PACE)) for i in range(COUNT)]
    begin += [(OPENING + 0.1 * i, PACE) for i in range(int((LENGTH - OPENING) * 10))]
    return [Arrival(i, at, i % SETTINGS.clients, size, size, "fin") for i, (at, size) in enumerate(begin)]


def test_established_connections_keep_their_server(tmp_path: Path) -> None:
    settings = replace(SETTINGS, servers=5, bottleneck_rate=Settings.bottleneck_rate)
    parts = deployment(settings)
    servers = [ServerAddresses(i) for i in range(settings.servers)]
    in_service, spare, to_drain = servers[:4], servers[4], servers[0]
    plan = make_plan()

    def body(box: Sandbox) -> object:
        plan_file = box.scratch / "plan.csv"
        workload.write_plan(plan, plan_file)
        edge = parts.edge(settings, box, in_service, FILMS[:1])
        with LsquicTestbed(settings, box.scratch, edge, parts.lsquic, parts.h3_client, pace=PACE) as testbed:
            testbed.offer_objects(a.wire_size for a in plan)
            testbed.wait_until_ready()
            added: list[float] = []
            dropped: list[dict[str, int]] = []

            def add() -> None:
                wait_until(lambda: sum(testbed.agents.active_flows()) >= COUNT, "all downloads are in progress")
                added.append(clients.elapsed())
                edge.add_server(spare)

            def restart_switch() -> None:
                dropped.append(drops(testbed))
                edge.stop_switch()
                edge.start_switch()
                edge.wait_until_installed(2)

            actions = [(ADD, add), (DRAIN, lambda: edge.drain(to_drain)), (ROTATE, testbed.rotate_key)]
            schedule = Schedule([*actions, (RESTART, restart_switch)])
            clients = Clients(testbed.clients, testbed.generator(plan_file), box.scratch / "clients.log")
            schedule.run(clients)
            outcomes = sorted(testbed.with_servers(plan, clients.outcomes), key=lambda outcome: outcome.index)
            dropped.append(drops(testbed))
            fields = [
                {
                    "index": outcome.index,
                    "outcome": outcome.outcome,
                    "server": outcome.server,
                    "port": outcome.local_port,
                    "started": (outcome.started_ns - clients.start_ns) / 1e9,
                    "finished": (outcome.finished_ns - clients.start_ns) / 1e9,
                }
                for outcome in outcomes
            ]
            return {
                "requests": fields,
                "drops": dropped,
                "added": added[0],
                "drained": schedule.ended[DRAIN],
                "restarted": schedule.ended[RESTART],
            }

    result = Sandboxed(body, tmp_path).result()
    requests = result["requests"]
    assert len(requests) == len(plan)
    assert [r for r in requests if r["outcome"] != "ok" or not r["server"]] == []
    before, after = result["drops"]
    assert not BROKEN & before.keys() and not BROKEN & after.keys(), (before, after)
    downloads, short = requests[:COUNT], requests[COUNT:]
    assert min(r["finished"] for r in downloads) > result["restarted"], "the downloads outlast all actions"
    assert spare.name not in {r["server"] for r in downloads if r["started"] < result["added"]}
    assert spare.name in {r["server"] for r in short}, "the added server gets connections"
    assert to_drain.name in {r["server"] for r in downloads}
    new = from_new_ports((r["index"], r["started"], (plan[r["index"]].client, r["port"])) for r in requests)
    late = [r for r in short if r["started"] > result["drained"] and r["index"] in new]
    assert [r for r in late if r["server"] == to_drain.name] == [], "the draining server gets no new connections"
    assert any(r["started"] > result["restarted"] for r in short), "the restarted switch assigns connections"
