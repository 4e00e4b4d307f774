"""Per-connection consistency over QUIC: of 1,000 connections none breaks and none moves while servers come and go, keys
rotate and the switch forgets everything; and a server that is taken away loses its own, and nobody else's.
"""

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from frontage_testbed.datacentre.addresses import ServerAddresses
from frontage_testbed.datacentre.clients import Clients, Generator
from frontage_testbed.datacentre.edge import EdgeSwitch
from frontage_testbed.datacentre.quic import QuicTestbed
from frontage_testbed.datacentre.servers import PACED, WebServer
from frontage_testbed.datacentre.services import FILMS
from frontage_testbed.datacentre.settings import TARGETS, Settings
from frontage_testbed.load import workload
from frontage_testbed.load.workload import Arrival
from frontage_testbed.sandbox import Sandbox
from quicrounds import BROKEN, drops, until
from testbeds import Sandboxed, deployment, needs_root

pytestmark = [needs_root, pytest.mark.slow]

SERVICES = FILMS[:1]
SETTINGS = Settings(servers=6, policies=("cclb4",), queue_delay=0.1)
SERVERS = [ServerAddresses(i) for i in range(SETTINGS.servers)]
IN_SERVICE, SPARE, TO_DRAIN, TO_LOSE = SERVERS[:5], SERVERS[5], SERVERS[0], SERVERS[1]

DOWNLOADS = {"softswitch": 1000, "bmv2": 200}
"""By the switch: BMv2 forwards some thousand packets a second, and each download begins with a dozen."""
OPENING = 6.0
"""Seconds within which the downloads begin."""
PACE = 2_000
"""Bytes per second of each."""
LENGTH = 55.0
"""Seconds that each takes at least."""
ADD, DRAIN, ROTATE, RESTART, LOSE = 7.0, 11.0, 15.0, 20.0, 35.0
"""When what is done begins, at the earliest."""
LATE = 50.0
"""Until when short requests show where new connections go."""
PATIENCE = 30.0
"""Seconds after which a client gives a silent server up."""
AFTER = LOSE + PATIENCE + 14.0
"""When all that was under way has ended."""


class PacedTestbed(QuicTestbed):
    """Behind each server there is an nginx that answers slowly, so that connections last."""

    routes = '[[route]]\npath = "/"\norigin = "http://127.0.0.1"\n'

    def _start_servers(self) -> None:
        for server in self.server_addresses:
            self._servers.append(WebServer.start(self.servers[server.index], server, self.scratch, None, PACE))
        super()._start_servers()

    def generator(self, plan: Path) -> Generator:
        """For what is slow."""
        fast = super().generator(plan)
        return lambda index, start_ns: [*fast(index, start_ns), "--path", PACED]

    def logged(self) -> list[tuple[float, str, str]]:
        """What was answered: when the request came, from which address and port, and the server's name."""
        found = []
        for server in self.server_addresses:
            for line in map(json.loads, self._log(server.name)):
                found.append((line["time"], line["client"], server.name))
        return sorted(found)


def make_plan(downloads: int) -> list[Arrival]:
    """The downloads; ten short requests a second meanwhile; and a few when all has settled."""
    begin = [(OPENING * i / downloads, int(LENGTH * PACE)) for i in range(downloads)]
    begin += [(OPENING + 0.1 * i, PACE) for i in range(int((LATE - OPENING) * 10))]
    begin += [(AFTER + 0.1 * i, PACE) for i in range(20)]
    return [Arrival(i, at, i % SETTINGS.clients, size, size, "fin") for i, (at, size) in enumerate(begin)]


def remove(edge: EdgeSwitch, server: ServerAddresses) -> None:
    """From all services."""
    for service in SERVICES:
        edge.frontage("remove-server", service.server_name(server))


@pytest.mark.parametrize("target", TARGETS)
def test_connections_stay_where_they_are(tmp_path: Path, target: str) -> None:
    settings = SETTINGS.on(target)
    found = deployment(settings)
    count = DOWNLOADS[target]
    plan = make_plan(count)

    def body(box: Sandbox) -> object:
        plan_file = box.scratch / "plan.csv"
        workload.write_plan(plan, plan_file)
        edge = found.edge(settings, box, IN_SERVICE, SERVICES)
        with PacedTestbed(settings, box.scratch, edge, found.quic_agent, found.h3_client) as testbed:
            testbed.offer_objects(a.wire_size for a in plan)
            testbed.wait_until_ready()
            dropped: list[dict[str, int]] = []
            added: list[float] = []

            def add() -> None:
                until(lambda: sum(testbed.agents.active_flows()) >= count, "as many are under way as are to stay")
                added.append(clients.elapsed())
                edge.add_server(SPARE)

            def restart_switch() -> None:
                dropped.append(drops(testbed))
                edge.stop_switch()
                edge.start_switch()
                edge.wait_until_installed(2)

            actions: list[tuple[float, Callable[[], object]]] = [
                (ADD, add),
                (DRAIN, lambda: edge.drain(TO_DRAIN)),
                (ROTATE, testbed.rotate_key),
                (RESTART, restart_switch),
                (LOSE, lambda: dropped.append(drops(testbed))),
                (LOSE, lambda: remove(edge, TO_LOSE)),
                # All that they had is done.
                (AFTER - 2.0, lambda: remove(edge, TO_DRAIN)),
            ]
            clients = Clients(testbed.clients, testbed.generator(plan_file), box.scratch / "clients.log")

            done: dict[float, float] = {}

            def act() -> None:
                while actions and actions[0][0] <= clients.elapsed():
                    due, action = actions.pop(0)
                    action()
                    done[due] = clients.elapsed()

            clients.run(act)
            assert not actions
            until(lambda: len(testbed.logged()) == len(plan), "every request is in its server's log")
            dropped.append(drops(testbed))
            return {
                "outcomes": [(o.index, o.outcome, o.local_port, (o.started_ns - clients.start_ns) / 1e9) for o in clients.outcomes],
                "connected": {o.index: (o.connected_ns - clients.start_ns) / 1e9 for o in clients.outcomes},
                "finished": {o.index: (o.finished_ns - clients.start_ns) / 1e9 for o in clients.outcomes},
                "logged": testbed.logged(),
                "addresses": [client.address6 for client in testbed.client_addresses],
                "dropped": dropped,
                "added": added[0],
                "done": [done[DRAIN], done[RESTART], done[LOSE]],
            }

    result = Sandboxed(body, tmp_path).result()
    drain_done, restart_done, lose_done = result["done"]
    assert len(result["outcomes"]) == len(plan)
    answers = defaultdict(list)
    for _, client, name in result["logged"]:
        answers[client].append(name)
    served = {}
    for index, outcome, port, started in sorted(result["outcomes"], key=lambda o: o[3]):
        # A port may have been another request's before.
        name = answers[f"[{result['addresses'][plan[index].client]}]:{port}"].pop(0)
        served[index] = (name, started)
        if outcome != "ok":
            assert name == TO_LOSE.name and started < lose_done, (index, outcome, name, started)
    assert not any(answers.values()), "one request, one server"
    lost = [index for index, outcome, *_ in result["outcomes"] if outcome != "ok"]
    assert len(lost) > count / 20, "it had connections when it was taken away"

    # No packet of an established connection is dropped, until a server is gone; then, only what is for that server.
    before, meanwhile, after = result["dropped"]
    assert not BROKEN & before.keys() and not BROKEN & meanwhile.keys(), (before, meanwhile)
    assert BROKEN & after.keys() == {"server-gone"}, after

    downloads = {index for index in served if index < count}
    early = {index for index in served if result["connected"][str(index)] < result["added"]}
    # Among those that were under way there may have been some of the short requests.
    assert len(downloads & early) > 0.9 * count, "all at a time"
    assert min(result["finished"][str(index)] for index in downloads) > lose_done, "all at a time"
    late = [served[index] for index in served if index not in downloads]
    assert SPARE.name not in {served[index][0] for index in early}
    assert SPARE.name in {name for name, _ in late}, "a server that was added takes part"
    assert TO_DRAIN.name in {served[index][0] for index in downloads}
    assert TO_DRAIN.name not in {name for name, started in late if started > drain_done}, "it drains"
    assert [name for name, started in late if started > restart_done], "the restarted switch assigns"
    assert not {TO_LOSE.name, TO_DRAIN.name} & {name for name, started in late if started >= AFTER}
