"""Per-connection consistency over QUIC: of 1,000 connections none breaks and none moves while servers come and go, keys
rotate and the switch forgets everything; and a server that is taken away loses its own, and nobody else's.
"""

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from frontage_demo import workload
from frontage_demo.addresses import ServerAddresses
from frontage_demo.clients import Clients, Generator
from frontage_demo.edge import EdgeSwitch
from frontage_demo.quic import QuicWorld
from frontage_demo.sandbox import Sandbox
from frontage_demo.servers import PACE, PACED, WebServer
from frontage_demo.services import FILMS
from frontage_demo.settings import Settings
from frontage_demo.workload import Arrival
from quicrounds import BROKEN, drops, until
from worlds import Sandboxed, deployment, needs_root

pytestmark = [needs_root, pytest.mark.slow]

SETTINGS = Settings(servers=8, policies=("cclb4",), queue_delay=0.1)
SERVERS = [ServerAddresses(i) for i in range(SETTINGS.servers)]
IN_SERVICE, SPARE, TO_DRAIN, TO_LOSE = SERVERS[:6], SERVERS[6:], SERVERS[:2], SERVERS[2]

DOWNLOADS = 1000
OPENING = 6.0
"""Seconds within which the downloads begin."""
LENGTH = 24.0
"""Seconds that each takes at least."""
ADD, DRAIN, ROTATE, RESTART, LOSE = 7.0, 9.0, 12.0, 16.0, 22.0
LATE = 26.0
"""Until when short requests show where new connections go."""
PATIENCE = 30.0
"""Seconds after which a client gives a silent server up."""
AFTER = LOSE + PATIENCE + 4.0
"""When all that was under way has ended."""


class PacedWorld(QuicWorld):
    """Behind each server there is an nginx that answers slowly, so that connections last."""

    routes = '[[route]]\npath = "/"\norigin = "http://127.0.0.1"\n'

    def _start_servers(self) -> None:
        for server in self.server_addresses:
            self._servers.append(WebServer.start(self.servers[server.index], server, self.scratch, None))
        super()._start_servers()

    def generator(self, plan: Path) -> Generator:
        """For what is slow."""
        fast = super().generator(plan)
        return lambda index, start_ns: [*fast(index, start_ns), "--path", PACED]

    def logged(self) -> dict[str, list[tuple[str, bool]]]:
        """By client address and port: the servers that answered, and whether wholly."""
        found = defaultdict(list)
        for server in self.server_addresses:
            for line in map(json.loads, (self.scratch / "quic" / f"{server.name}.json").read_text().splitlines()):
                found[line["client"]].append((server.name, line["whole"]))
        return found


def make_plan() -> list[Arrival]:
    """The downloads; ten short requests a second meanwhile; and a few when all has settled."""
    begin = [(OPENING * i / DOWNLOADS, int(LENGTH * PACE)) for i in range(DOWNLOADS)]
    begin += [(OPENING + 0.1 * i, PACE) for i in range(int((LATE - OPENING) * 10))]
    begin += [(AFTER + 0.1 * i, PACE) for i in range(20)]
    return [Arrival(i, at, i % SETTINGS.clients, size, size, "fin") for i, (at, size) in enumerate(begin)]


def remove(edge: EdgeSwitch, server: ServerAddresses) -> None:
    """From all services."""
    for service in FILMS:
        edge.frontage("remove-server", service.server_name(server))


def test_connections_stay_where_they_are(tmp_path: Path) -> None:
    found = deployment(SETTINGS)
    plan = make_plan()

    def body(box: Sandbox) -> object:
        plan_file = box.scratch / "plan.csv"
        workload.write_plan(plan, plan_file)
        edge = found.edge(SETTINGS, box, IN_SERVICE, FILMS)
        with PacedWorld(SETTINGS, box.scratch, edge, found.quic_agent, found.h3_client) as world:
            world.offer_objects(a.wire_size for a in plan)
            world.wait_until_ready()
            dropped: list[dict[str, int]] = []

            def restart_switch() -> None:
                dropped.append(drops(world))
                edge.stop_switch()
                edge.start_switch()

            actions: list[tuple[float, Callable[[], object]]] = [
                *((ADD, lambda s=s: edge.add_server(s)) for s in SPARE),
                *((DRAIN, lambda s=s: edge.drain(s)) for s in TO_DRAIN),
                (ROTATE, world.rotate_key),
                (RESTART, restart_switch),
                (LOSE, lambda: dropped.append(drops(world))),
                (LOSE, lambda: remove(edge, TO_LOSE)),
                # All that they had is done.
                *((AFTER - 2.0, lambda s=s: remove(edge, s)) for s in TO_DRAIN),
            ]
            clients = Clients(world.clients, world.generator(plan_file), box.scratch / "clients.log")

            def act() -> None:
                while actions and actions[0][0] <= clients.elapsed():
                    actions.pop(0)[1]()

            clients.run(act)
            assert not actions
            until(lambda: len(world.logged()) >= len(clients.outcomes), "every connection is in its server's log")
            dropped.append(drops(world))
            return {
                "outcomes": [
                    (o.index, o.outcome, o.local_port, (o.started_ns - clients.start_ns) / 1e9)
                    for o in clients.outcomes
                ],
                "finished": {o.index: (o.finished_ns - clients.start_ns) / 1e9 for o in clients.outcomes},
                "logged": world.logged(),
                "addresses": [client.address6 for client in world.client_addresses],
                "dropped": dropped,
            }

    result = Sandboxed(body, tmp_path).result()
    assert len(result["outcomes"]) == len(plan)
    served = {}
    for index, outcome, port, started in result["outcomes"]:
        answers = result["logged"][f"[{result['addresses'][plan[index].client]}]:{port}"]
        assert len(answers) == 1, ("one request, one server", index, answers)
        ((name, whole),) = answers
        served[index] = (name, started)
        if outcome == "ok":
            assert whole
        else:
            assert (name, whole) == (TO_LOSE.name, False) and started < LOSE, (index, outcome, name, started)
    lost = [index for index, outcome, *_ in result["outcomes"] if outcome != "ok"]
    assert len(lost) > DOWNLOADS / 20, "it had connections when it was taken away"

    # No packet of an established connection is dropped, until a server is gone; then, only what is for that server.
    before, meanwhile, after = result["dropped"]
    assert not BROKEN & before.keys() and not BROKEN & meanwhile.keys(), (before, meanwhile)
    assert BROKEN & after.keys() == {"server-gone"}, after

    downloads = {index for index in served if index < DOWNLOADS}
    last_begin = max(served[index][1] for index in downloads)
    assert last_begin < ADD and min(result["finished"][str(index)] for index in downloads) > LOSE, "all at a time"
    late = [served[index] for index in served if index not in downloads]
    spare, drained = {s.name for s in SPARE}, {s.name for s in TO_DRAIN}
    assert not spare & {name for name, started in served.values() if started < ADD}
    assert spare <= {name for name, _ in late}, "servers that were added take part"
    assert drained & {served[index][0] for index in downloads}
    assert not drained & {name for name, started in late if started > DRAIN + 2.0}, "they drain"
    assert [name for name, started in late if started > RESTART + 2.0], "the restarted switch assigns"
    assert TO_LOSE.name not in {name for name, started in late if started > LOSE + 2.0}
    assert {name for name, started in late if started >= AFTER} <= {s.name for s in SERVERS} - drained - {TO_LOSE.name}
