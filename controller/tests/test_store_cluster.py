# SPDX-License-Identifier: Apache-2.0
"""Three controllers that share a store in a real cluster of NATS servers, and two switches: every kind of failure of any of them."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from authorities import Authority
from conftest import EXAMPLE, PROGRAM
from frontage.api.client import RequestError
from frontage.config.store import NatsStore
from frontage.p4.session import Session
from frontage.store.connection import Connection
from frontage.store.journal import SharedJournal
from replicas import LIMIT, Controller, Link, Nats, Watched, eventually, in_sync, leader_of, nats_servers

SECRET = "000102030405060708090a0b0c0d0e0f"
DISCOVERED = (
    "  - { name: films, address: 203.0.113.11, port: 80, "
    "discovery: { kind: file, path: targets.json, interval: 1, sids: [100, 199] } }\n"
)
TARGETS = '[{"targets": ["10.0.0.21:80", "10.0.0.22:80"]}]'
LEASE = 4
"""Seconds."""

pytestmark = pytest.mark.timeout(480)


def text_of(switches: list[Watched], urls: list[str], *, has_api: bool) -> str:
    """Return the example of a fleet for these switches and NATS servers, with an API for servers if ``has_api``."""
    text = EXAMPLE.with_name("fleet.yaml").read_text()
    for switch, address in zip(switches, ("127.0.0.1:9559", "127.0.0.1:9560"), strict=True):
        text = text.replace(f"address: {address}\n", f"address: '{switch.address}'\n    device_id: 1\n")
    text = text.replace("../../build/p4", str(PROGRAM)).replace("127.0.0.1:9464", "127.0.0.1:0")
    secret = next(line.split()[1] for line in text.splitlines() if line.strip().startswith("secret:"))
    text = text.replace(f"secret: {secret}", "secret_file: key-1.hex")
    text = text.replace("\nservers:\n", f"{DISCOVERED}\nservers:\n")
    servers = ", ".join(f'"{url}"' for url in urls)
    tls = "{ certificate: server.pem, key: server-key.pem, clients: ca.pem }"
    api = f"api: {{ listen: '127.0.0.1:0', certificates: grants.toml, tls: {tls} }}"
    return f"{text}\nstore: {{ nats: {{ servers: [{servers}], lease: {LEASE} }} }}\n{api if has_api else ''}\n"


@dataclass
class Site:
    """The processes of a test."""

    nats: Nats
    switches: list[Watched]
    controllers: list[Controller]
    links: list[Link]
    """Those of the first controller, which leads at first."""

    def others(self, leader: Controller) -> list[Controller]:
        return [controller for controller in self.controllers if controller is not leader]

    def writes(self, term: int) -> int:
        """Return the number of write requests with this term, at all switches."""
        return sum(switch.writes[term] for switch in self.switches)

    async def history(self) -> list[dict[str, Any]]:
        leader = await leader_of(self.controllers)
        found: list[dict[str, Any]] = await leader.send("GET", "/history?limit=1000")
        return found[::-1]


@asynccontextmanager
async def site(folder: Path, known: int = 0, *, has_api: bool = False) -> AsyncIterator[Site]:
    """Run three controllers. ``known`` is the largest election id that the first switch knows from an earlier controller."""
    async with AsyncExitStack() as stack:
        nats = await stack.enter_async_context(nats_servers(folder))
        switches = [await stack.enter_async_context(Watched(folder / name, name).running()) for name in ("edge1", "edge2")]
        switches[1].order = switches[0].order
        if known:
            async with Session(switches[0].switch.address, 1) as session:
                await session.connect(LIMIT)
                await session.arbitrate(known)
                await anext(session.arbitrations())
        links = [await stack.enter_async_context(Link.to(node.address, node.client)) for node in nats.nodes]
        controllers = []
        for name, urls in (("c1", [link.url for link in links]), ("c2", nats.urls), ("c3", nats.urls)):
            controllers.append(Controller(folder / name, name, text_of(switches, urls, has_api=has_api)))
            (folder / name / "key-1.hex").write_text(SECRET)
            authority = Authority(folder / name)
            authority.issue("server", "127.0.0.1")
            authority.issue("web1", "web1.example")
            (folder / name / "grants.toml").write_text('[[certificates]]\nname = "web1.example"\nserver = "web1"\n')
            stack.callback(controllers[-1].stop)
        found = Site(nats, switches, controllers, links)
        try:
            # Only the first controller reaches the source of servers.
            (folder / "c1" / "targets.json").write_text(TARGETS)
            controllers[0].start()
            await leader_of(controllers[:1])
            for controller in controllers[1:]:
                controller.start()
            await in_sync(controllers)
            yield found
        except BaseException:
            for controller in controllers:
                print(f"--- {controller.name}\n{controller.log.read_text() if controller.log.exists() else ''}")
            raise


async def kill_during(found: Site, switch: Watched, when: Callable[[], bool], method: str, path: str, body: Any, key: str) -> int:
    """Kill the leader while it changes ``switch``. Another controller takes the request, and must answer. Return the new term."""
    leader = await leader_of(found.controllers)
    follower = found.others(leader)[0]
    switch.hold(when)
    request = asyncio.create_task(follower.send(method, path, body, Idempotency_Key=key))
    async with asyncio.timeout(LIMIT):
        await switch.held.wait()
    assert (await leader.send("GET", "/history?limit=1"))[0]["result"] is None
    leader.kill()
    switch.free()
    done = await request
    assert done["installed"], done
    # The same request once more does not make the change again.
    again = await found.others(leader)[1].send(method, path, body, Idempotency_Key=key)
    assert (again["number"], again["id"]) == (done["number"], done["id"])
    successor = await leader_of(found.others(leader))
    leader.start()
    await in_sync(found.controllers)
    return int((await successor.store())["term"])


async def test_leaders_are_killed_in_turn(folder: Path) -> None:
    async with site(folder) as found:
        edge1, edge2 = found.switches
        follower = found.controllers[1]
        assert (await follower.send("PATCH", "/servers/web2", {"weight": 2}))["installed"]
        assert (await follower.send("GET", "/servers/web2"))["weight"] == 2

        sids = await discovered(found)
        assert len(sids) == 2

        # During the first round of a rollout: only one switch knows the new server.
        server = {"name": "web3", "vip": "shop", "address": "10.0.0.13", "port": 8080, "sid": 3}
        await kill_during(found, edge2, lambda: True, "POST", "/servers", server, "add")

        # During the last round of a key rotation: one switch seals with the new key, and must go on with it.
        first = len(edge1.order)

        def is_last_round() -> bool:
            order = edge1.order[first:]
            return edge2.name in order[:-1] and edge1.name in order[order.index(edge2.name) :]

        before = edge1.entries.copy()
        term = await kill_during(found, edge2, is_last_round, "POST", "/keys", None, "rotate")
        assert edge1.entries[term] == before[term] == 0
        assert [key["id"] for key in await found.controllers[0].send("GET", "/keys") if key["seals"]] == [2]
        assert len({(folder / name / "key-2.hex").read_text() for name in ("c1", "c2", "c3")}) == 1

        await kill_during(found, edge1, lambda: True, "PATCH", "/servers/web2", {"state": "draining"}, "drain")

        assert await discovered(found) == sids

        history = await found.history()
        assert [entry["number"] for entry in history] == list(range(1, len(history) + 1))
        assert [entry["verb"] for entry in history] == ["start", "set-weight", "add-server", "rotate-key", "drain"]
        assert {entry["result"] for entry in history} == {"installed"}
        assert await chain_is_intact(found) > len(history)


async def discovered(found: Site) -> set[int]:
    """Wait until all controllers have the same discovered servers, and return their SIDs."""
    sids: list[frozenset[int]] = []

    async def agree() -> bool:
        sids.clear()
        for controller in found.controllers:
            servers = await controller.send("GET", "/servers?vip=films")
            sids.append(frozenset(server["sid"] for server in servers))
        return len(set(sids)) == 1 and len(sids[0]) > 0

    await eventually(agree, "the same discovered servers")
    return set(sids[0])


async def chain_is_intact(found: Site) -> int:
    """Check the chain of the journal in the store, and return the number of lines."""
    connection = await Connection.open(NatsStore(servers=tuple(found.nats.urls)))
    try:
        journal = SharedJournal()
        journal.open(connection)
        await journal.follow()
        return journal.history().lines
    finally:
        await connection.close()


async def test_servers_fetch_keys_at_a_follower(folder: Path) -> None:
    async with site(folder, has_api=True) as found:
        leader, follower, other = found.controllers
        address = (await follower.send("GET", "/status"))["api"]["address"]

        async def holders(controller: Controller, newest: int) -> bool:
            expected = {"newest": newest, "servers": {"web1": newest}, "late": []}
            return bool(await controller.send("GET", "/keys/holders") == expected)

        with follower.follows_keys("web1", "web1", f"https://{address}") as keys:
            await eventually(lambda: holders(other, 1), "the acknowledgement of the first key")
            await follower.send("POST", "/keys")
            await eventually(lambda: holders(other, 2), "the acknowledgement of the second key")
            assert "id = 2" in keys.read_text()
        # The next leader knows the acknowledgement, although the server is gone.
        await eventually(lambda: stored(found, {"web1": 2}), "the acknowledgement in the store")
        leader.kill()
        await leader_of(found.others(leader))
        assert await holders(follower, 2)


async def stored(found: Site, held: dict[str, int]) -> bool:
    """Return whether the store has these acknowledgements of keys."""
    connection = await Connection.open(NatsStore(servers=tuple(found.nats.urls)))
    try:
        data = await connection.get("held_keys")
    finally:
        await connection.close()
    return data is not None and json.loads(data[0]) == held


async def test_partitioned_leader_writes_nothing(folder: Path) -> None:
    async with site(folder) as found:
        former, *others = found.controllers
        term = (await former.store())["term"]
        written = found.writes(term)
        assert written > 0

        # Partitioned from the store, but not from the switches.
        for link in found.links:
            link.cut()
        with pytest.raises(RequestError, match="majority of its servers is running") as refused:
            await former.send("PATCH", "/servers/web1", {"weight": 5})
        assert refused.value.status == 503
        successor = await leader_of(others)
        assert (await others[1].send("PATCH", "/servers/web1", {"weight": 3}))["installed"]
        assert not (await former.store())["is_leading"]
        with pytest.raises(RequestError, match="nothing was changed, and the switches keep their state"):
            await former.send("PATCH", "/servers/web1", {"weight": 6})
        assert (await former.send("GET", "/servers/web1"))["weight"] == 1  # what it knew
        for link in found.links:
            link.mend()
        await in_sync(found.controllers)
        assert (await former.send("GET", "/servers/web1"))["weight"] == 3
        assert (await former.send("PATCH", "/servers/web1", {"weight": 4}))["installed"]
        assert found.writes(term) == written

        # A paused process does not know that its lease has ended.
        term = (await successor.store())["term"]
        written = found.writes(term)
        successor.signal(signal.SIGSTOP)
        rest = found.others(successor)
        assert (await rest[0].send("PATCH", "/servers/web2", {"weight": 7}))["installed"]
        successor.signal(signal.SIGCONT)
        await in_sync(found.controllers)
        assert found.writes(term) == written
        assert [entry["verb"] for entry in await found.history()] == ["start", *["set-weight"] * 3]


async def edited_copies_are_restored(found: Site) -> None:
    for controller in found.controllers[:2]:
        text = controller.file.read_text()
        controller.file.write_text(text.replace("port: 8080", "port: 8081"))

        async def is_restored(controller: Controller = controller, text: str = text) -> bool:
            return controller.file.read_text() == text

        await eventually(is_restored, "the copy")
        assert "port: 8081" in controller.file.with_name(".site.yaml.rejected").read_text()
    assert len(await found.history()) == 1


async def test_failures_of_the_store(folder: Path) -> None:
    async with site(folder, known=150) as found:
        follower = found.controllers[1]
        await edited_copies_are_restored(found)

        async def is_shown() -> bool:
            # The leader may have changed: a lease may end on a busy machine.
            said = await asyncio.to_thread(status, follower)
            leads = re.search(r"frontage: leader c\d \(term (\d+)\); this is c2", said)
            return leads is not None and int(leads[1]) > 150 and "c3: seen" in said

        await eventually(is_shown, "the leader in the status")

        found.nats.kill(found.nats.nodes[0])
        # The store may be without a leader for longer than the lease.
        assert (await follower.repeat("PATCH", "/servers/web2", {"weight": 2}))["installed"]

        async def have_weight_2() -> bool:
            # A controller that does not lead learns of the change from the store, which is about to stop.
            return all([await weight(controller) == 2 for controller in found.controllers])

        await eventually(have_weight_2, "the weight at every controller")

        for node in found.nats.nodes[1:]:
            found.nats.kill(node)
        await eventually(lambda: no_one_leads(found), "the end of the lease")
        written = sum(switch.writes.total() for switch in found.switches)
        for controller in found.controllers:
            with pytest.raises(RequestError, match="the switches keep their state") as refused:
                await controller.send("PATCH", "/servers/web2", {"weight": 3})
            assert refused.value.status == 503
            assert await weight(controller) == 2
            assert (await controller.store())["error"]
        assert sum(switch.writes.total() for switch in found.switches) == written

        found.nats.start_all()
        await found.nats.ready()
        await leader_of(found.controllers)
        assert (await follower.repeat("PATCH", "/servers/web2", {"weight": 3}))["installed"]
        await in_sync(found.controllers)
        assert [(entry["number"], entry["result"]) for entry in await found.history()] == [(i, "installed") for i in (1, 2, 3)]


def status(controller: Controller) -> str:
    words = [sys.executable, "-m", "frontage", "status", "-c", str(controller.file)]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=LIMIT).stdout


async def weight(controller: Controller) -> object:
    return (await controller.send("GET", "/servers/web2"))["weight"]


async def no_one_leads(found: Site) -> bool:
    return not any([(await controller.store())["is_leading"] for controller in found.controllers])
