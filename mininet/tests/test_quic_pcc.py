# SPDX-License-Identifier: Apache-2.0
"""Per-connection consistency over QUIC: none of 1,000 connections breaks or moves while servers come and go, keys rotate
and the switch restarts empty. A removed server loses only its own connections.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from frontage_testbed.datacentre.addresses import ServerAddresses
from frontage_testbed.datacentre.clients import Clients
from frontage_testbed.datacentre.edge import EdgeSwitch
from frontage_testbed.datacentre.services import FILMS
from frontage_testbed.datacentre.settings import TARGETS, Settings
from frontage_testbed.load import workload
from frontage_testbed.load.outcome import Outcome
from frontage_testbed.load.workload import Arrival
from frontage_testbed.sandbox import Sandbox
from pacedquic import PACE, PacedTestbed
from quicrounds import BROKEN, drops, from_new_ports, wait_until
from testbeds import Sandboxed, Schedule, deployment, needs_root, only_long

pytestmark = [needs_root, pytest.mark.slow(seconds=85)]

SERVICES = FILMS[:1]
SETTINGS = Settings(servers=6, policies=("cclb4",), queue_delay=0.1)
SERVERS = [ServerAddresses(i) for i in range(SETTINGS.servers)]
IN_SERVICE, SPARE, TO_DRAIN, TO_LOSE = SERVERS[:5], SERVERS[5], SERVERS[0], SERVERS[1]

DOWNLOADS = {"softswitch": 1000, "bmv2": 200, "tna": 1000}
"""By switch: BMv2 forwards some thousand packets per second, and each download begins with a dozen."""
OPENING = 6.0
"""Seconds within which the downloads begin."""
LENGTH = 55.0
"""Minimum duration of each download in seconds."""
ADD, DRAIN, ROTATE, RESTART, LOSE = 7.0, 11.0, 15.0, 20.0, 35.0
"""Earliest times of the actions in seconds."""
LATE = 50.0
"""End of the short requests that show the assignment of new connections."""
IDLE_TIMEOUT = 30.0
"""Seconds after which a client gives up a silent server."""
AFTER = LOSE + IDLE_TIMEOUT + 14.0
"""Time at which all connections have ended."""


@dataclass(frozen=True)
class Request:
    """A finished request. Times are seconds since the plan's beginning."""

    index: int
    outcome: str
    local_port: int
    started: float
    connected: float
    finished: float

    @classmethod
    def of(cls, outcome: Outcome, start_ns: int) -> Request:
        """Convert a client's outcome."""
        times = (outcome.started_ns, outcome.connected_ns, outcome.finished_ns)
        return cls(outcome.index, outcome.outcome, outcome.local_port, *((time - start_ns) / 1e9 for time in times))


@dataclass(frozen=True)
class Observed:
    """The observations of a run."""

    requests: list[Request]
    logged: list[tuple[float, str, str]]
    """`PacedTestbed.logged` at the end."""
    addresses: list[str]
    """The clients' addresses, by index."""
    drops: list[dict[str, int]]
    """The switch's drops before its restart, before the removal of a server, and at the end."""
    added: float
    """Time at which a server was added."""
    drained: float
    restarted: float
    removed: float
    """Times at which draining, the switch's restart and the removal of a server were complete."""

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> Observed:
        """Restore what passed through JSON."""
        return cls(**fields | {"requests": [Request(**request) for request in fields["requests"]]})


def make_plan(downloads: int) -> list[Arrival]:
    """Return the downloads, ten short requests per second in parallel, and a few after all actions."""
    begin = [(OPENING * i / downloads, int(LENGTH * PACE)) for i in range(downloads)]
    begin += [(OPENING + 0.1 * i, PACE) for i in range(int((LATE - OPENING) * 10))]
    begin += [(AFTER + 0.1 * i, PACE) for i in range(20)]
    return [Arrival(i, at, i % SETTINGS.clients, size, size, "fin") for i, (at, size) in enumerate(begin)]


def remove(edge: EdgeSwitch, server: ServerAddresses) -> None:
    """Remove a server from all services."""
    for service in SERVICES:
        edge.frontage("remove-server", service.server_name(server))


@pytest.mark.parametrize(
    "settings",
    [
        *(pytest.param(SETTINGS.on(target), id=target, marks=() if target == "tna" else only_long) for target in TARGETS),
        pytest.param(replace(SETTINGS, target="tna", program="tofino1quic"), id="tofino1quic", marks=only_long),
    ],
)
def test_established_connections_keep_their_server(tmp_path: Path, settings: Settings) -> None:
    parts = deployment(settings)
    count = DOWNLOADS[settings.target]
    plan = make_plan(count)

    def body(box: Sandbox) -> object:
        plan_file = box.scratch / "plan.csv"
        workload.write_plan(plan, plan_file)
        edge = parts.edge(settings, box, IN_SERVICE, SERVICES)
        with PacedTestbed(settings, box.scratch, edge, parts.quic_agent, parts.h3_client) as testbed:
            testbed.offer_objects(a.wire_size for a in plan)
            testbed.wait_until_ready()
            dropped: list[dict[str, int]] = []
            added: list[float] = []

            def add() -> None:
                wait_until(lambda: sum(testbed.agents.active_flows()) >= count, "all downloads are in progress")
                added.append(clients.elapsed())
                edge.add_server(SPARE)

            def restart_switch() -> None:
                dropped.append(drops(testbed))
                edge.stop_switch()
                edge.start_switch()
                edge.wait_until_installed(2)

            schedule = Schedule(
                [
                    (ADD, add),
                    (DRAIN, lambda: edge.drain(TO_DRAIN)),
                    (ROTATE, testbed.rotate_key),
                    (RESTART, restart_switch),
                    (LOSE, lambda: dropped.append(drops(testbed))),
                    (LOSE, lambda: remove(edge, TO_LOSE)),
                    # The draining server has no connections left.
                    (AFTER - 2.0, lambda: remove(edge, TO_DRAIN)),
                ]
            )
            clients = Clients(testbed.clients, testbed.generator(plan_file), box.scratch / "clients.log")

            schedule.run(clients)
            wait_until(lambda: len(testbed.logged()) == len(plan), "the servers' logs are complete")
            dropped.append(drops(testbed))
            observed = Observed(
                requests=[Request.of(outcome, clients.start_ns) for outcome in clients.outcomes],
                logged=testbed.logged(),
                addresses=[client.address6 for client in testbed.client_addresses],
                drops=dropped,
                added=added[0],
                drained=schedule.ended[DRAIN],
                restarted=schedule.ended[RESTART],
                removed=schedule.ended[LOSE],
            )
            return asdict(observed)

    result = Observed.parse(Sandboxed(body, tmp_path).result())
    assert len(result.requests) == len(plan)
    answers = defaultdict(list)
    for _, client, name in result.logged:
        answers[client].append(name)
    server_of: dict[int, str] = {}
    for request in sorted(result.requests, key=lambda request: request.started):
        # An earlier request may have used the same port.
        name = answers[f"[{result.addresses[plan[request.index].client]}]:{request.local_port}"].pop(0)
        server_of[request.index] = name
        if request.outcome != "ok":
            assert name == TO_LOSE.name and request.started < result.removed, (request, name)
    assert not any(answers.values()), "each request is in one server's log"
    lost = [request for request in result.requests if request.outcome != "ok"]
    assert len(lost) > count / 20, "the removed server had connections"

    # The switch drops no packet of an established connection until a server is removed; then only that server's.
    before, meanwhile, after = result.drops
    assert not BROKEN & before.keys() and not BROKEN & meanwhile.keys(), (before, meanwhile)
    assert BROKEN & after.keys() == {"server-gone"}, after

    downloads = [request for request in result.requests if request.index < count]
    short = [request for request in result.requests if request.index >= count]
    early = [request for request in result.requests if request.connected < result.added]
    # The active flows may have included some of the short requests.
    assert sum(request.index < count for request in early) > 0.9 * count, "the downloads are in progress at the same time"
    assert min(request.finished for request in downloads) > result.removed, "the downloads outlast all actions"

    def servers(requests: Iterable[Request]) -> set[str]:
        return {server_of[request.index] for request in requests}

    assert SPARE.name not in servers(early)
    assert SPARE.name in servers(short), "the added server gets connections"
    assert TO_DRAIN.name in servers(downloads)
    new = from_new_ports((r.index, r.started, (plan[r.index].client, r.local_port)) for r in result.requests)
    late = [r for r in short if r.started > result.drained and r.index in new]
    assert TO_DRAIN.name not in servers(late), "the draining server gets no new ones"
    assert servers(r for r in short if r.started > result.restarted), "the restarted switch assigns connections"
    assert not {TO_LOSE.name, TO_DRAIN.name} & servers(r for r in short if r.started >= AFTER)
