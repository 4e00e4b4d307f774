# SPDX-License-Identifier: Apache-2.0
"""Neighbor resolution with a real switch. The switch runs without ports, so the tests pass messages to the resolver."""

from __future__ import annotations

import asyncio
from ipaddress import ip_address
from pathlib import Path

from conftest import Switch
from frontage.config import load
from frontage.fields import Mac
from frontage.neighbors.machine import Effect, State
from frontage.neighbors.metrics import neighbor_metrics
from frontage.neighbors.table import Kind, Message
from frontage.p4.entries import Action, Key
from frontage.service.controller import Controller
from frontage.service.daemon import Service
from frontage.service.health import Phase
from frontage.service.status import read_status
from frontage.state.blocks import forwarding
from frontage.state.reconcile import plan
from live import LIMIT, connected, installed, only, running, serving, until

WEB1, ROUTER, ROUTER6 = ip_address("10.0.0.11"), ip_address("192.0.2.254"), ip_address("2001:db8:1::fe")
PORTS = {"uplink": 1, "rack": 2}
ROUTE = forwarding.route_key


def mac_of(number: int) -> Mac:
    return Mac(0x020000009900 + number)


def say(controller: Controller, address: str, mac: Mac, kind: Kind = Kind.ARP_REPLY) -> Effect:
    """Hand over a message that arrives on the right port."""
    resolver, host = controller.neighbors, ip_address(address)
    if host.version == 6:
        kind = Kind.NDP_ADVERTISEMENT
    port = resolver.table.neighbors[host].wanted.links[0].port.id
    effect = resolver.table.on_message(Message(kind, port, int(host), mac, mac), asyncio.get_running_loop().time()).effect
    resolver.wake()
    assert isinstance(effect, Effect)
    return effect


async def resolve_all(controller: Controller) -> None:
    """Answer for all neighbors, and wait until the switch has their addresses."""
    for number, address in enumerate(controller.config.wanted):
        say(controller, str(address), mac_of(number))
    await until(lambda: installed_neighbors(controller) == controller.neighbors.version > 0)


def installed_neighbors(controller: Controller) -> int:
    """Return the version of the neighbors that the switch has."""
    return controller._installation.neighbors if controller._installation is not None else -1


async def next_hops(controller: Controller) -> dict[Key, tuple[int, Mac]]:
    session, pipeline = connected(controller)
    found = await plan(session, pipeline.schema, controller.config)
    return forwarding.installed_hops(found.installed)


async def test_unresolved_hosts_have_no_next_hop(config_file: Path) -> None:
    async with running(load(config_file)) as controller:
        state = await installed(controller)
        assert state[forwarding.host_key(WEB1)] == Action("set_next_hop", (forwarding.UNRESOLVED,))
        assert not any(key.table == forwarding.NEXT_HOP for key in state)


async def test_resolved_addresses_are_written_without_reading(config_file: Path) -> None:
    async with running(load(config_file)) as controller:
        before = await installed(controller)
        reads = 0
        session, _ = connected(controller)
        read_tables = session.read_tables

        async def count(*arguments: object) -> object:
            nonlocal reads
            reads += 1
            return await read_tables(*arguments)  # type: ignore[arg-type]

        session.read_tables = count  # type: ignore[method-assign, assignment]
        await resolve_all(controller)
        assert reads == 0
        session.read_tables = read_tables  # type: ignore[method-assign]
        after = await installed(controller)
        hops = await next_hops(controller)
        assert hops[forwarding.host_key(WEB1)] == (2, mac_of(list(controller.config.wanted).index(WEB1)))
        assert {ROUTE(route) for route in controller.config.routes} <= hops.keys()
        assert controller._installation is not None
        assert controller._installation.state == after
        changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        assert {key.table for key in changed} == set(forwarding.TABLES)


async def test_moved_neighbor_is_written(config_file: Path) -> None:
    async with running(load(config_file)) as controller:
        await installed(controller)
        await resolve_all(controller)
        version = controller.neighbors.version
        assert say(controller, str(WEB1), mac_of(200), Kind.ARP_ANNOUNCEMENT) is Effect.CLAIMED
        await until(lambda: installed_neighbors(controller) > version)
        hops = await next_hops(controller)
        assert hops[forwarding.host_key(WEB1)] == (2, mac_of(200))
        macs = {mac for _, mac in hops.values()}
        assert len(macs) == len(controller.config.wanted)


async def test_restarted_controller_keeps_installed_addresses(config_file: Path) -> None:
    async with running(load(config_file)) as first:
        await installed(first)
        await resolve_all(first)
        before = await installed(first)
    async with running(load(config_file)) as second:
        assert await installed(second) == before
        assert second.health.writes.total() == 0
        states = second.neighbors.table.states
        assert states[State.STALE] + states[State.PROBE] == len(second.config.wanted)
        assert second.neighbors.known == first.neighbors.known


async def test_restarted_switch_gets_known_addresses_at_once(config_file: Path, switch: Switch) -> None:
    async with running(load(config_file)) as controller:
        await installed(controller)
        await resolve_all(controller)
        before = await installed(controller)
        switch.stop()
        await until(lambda: controller.health.phase is Phase.CONNECTING)
        switch.start()
        await until(lambda: controller.health.phase is Phase.INSTALLED)
        assert (await next_hops(controller)).keys() == forwarding.installed_hops(before).keys()
        assert controller.health.last is not None
        assert controller.health.last.inserted > 2000


async def test_standby_resolves_nothing_and_takes_over_what_is_installed(config_file: Path) -> None:
    config = load(config_file)
    async with running(config) as standby:
        async with running(config, election_id=200) as primary:
            await until(lambda: primary.primary and primary.health.phase is Phase.INSTALLED)
            await until(lambda: standby.health.phase is Phase.STANDBY)
            await resolve_all(primary)
            known = dict(primary.neighbors.known)
            await asyncio.sleep(0.3)
            assert standby.neighbors.requests.total() == 0
            assert standby.neighbors.known == {}
        await until(lambda: standby.primary and standby.health.phase is Phase.INSTALLED)
        assert standby.neighbors.known == known
        assert standby.health.writes.total() == 0
        await until(lambda: standby.neighbors.requests["unicast"] > 0)


async def test_failed_neighbor_is_removed_from_the_switch(config_file: Path) -> None:
    async with running(load(config_file)) as controller:
        await installed(controller)
        await resolve_all(controller)
        neighbor = controller.neighbors.table.neighbors[WEB1]
        while neighbor.state is not State.FAILED:
            neighbor.poll(neighbor.due)
        controller.neighbors.wake()
        key = forwarding.host_key(WEB1)
        async with asyncio.timeout(LIMIT):
            while key in await next_hops(controller):
                await asyncio.sleep(0.02)
        assert (await installed_state(controller))[key] == Action("set_next_hop", (forwarding.UNRESOLVED,))


async def installed_state(controller: Controller) -> dict[Key, Action]:
    session, pipeline = connected(controller)
    return (await plan(session, pipeline.schema, controller.config)).installed


async def test_changed_configuration_asks_for_new_hosts(config_file: Path) -> None:
    async with running(load(config_file)) as controller:
        await installed(controller)
        await resolve_all(controller)
        text = (
            config_file.read_text().replace("10.0.0.14\n", "10.0.0.15\n").replace("next_hop: 192.0.2.254", "next_hop: 192.0.2.253")
        )
        config_file.write_text(text)
        await controller.apply(load(config_file))
        table = controller.neighbors.table
        assert ip_address("10.0.0.14") not in table.neighbors
        assert table.neighbors[ip_address("10.0.0.15")].resolved is None
        # The route keeps its Ethernet address until the new next hop answers.
        route = controller.config.routes[0]
        old = (await next_hops(controller))[ROUTE(route)]
        assert table.neighbors[ip_address("192.0.2.253")].resolved == ("uplink", old[1])


async def test_status_lists_neighbors(config_file: Path) -> None:
    service = Service(config_file)
    async with serving(service):
        controller = only(service)
        await installed(controller)
        await resolve_all(controller)
        say(controller, str(ROUTER), mac_of(77))
        table = controller.neighbors.table
        rejected = table.on_message(Message(Kind.ARP_REPLY, PORTS["rack"], int(ROUTER), mac_of(78), mac_of(78)), 0.0)
        assert rejected.effect == "port"
        neighbor = table.neighbors[ROUTER]
        await until(lambda: neighbor._claim is None or neighbor._claim.probes > 0)
        assert say(controller, str(ROUTER), mac_of(list(controller.config.wanted).index(ROUTER))) is Effect.CONFLICT
        status = await service.status()
        assert isinstance(status, dict)
        (found,) = (one for one in status["neighbors"] if one["address"] == str(ROUTER))
        assert found.pop("age") < LIMIT
        mac = str(mac_of(list(controller.config.wanted).index(ROUTER)))
        assert found == {
            "device": "switch",
            "address": str(ROUTER),
            "port": "uplink",
            "mac": mac,
            "state": "reachable",
            "conflicts": 1,
            "claimant": str(mac_of(77)),
            "rejected": 1,
        }
        assert status["difference"]["missing"] == status["difference"]["different"] == 0
        # Without the controller's knowledge, the status has what is installed.
        session, pipeline = connected(controller)
        plain = await read_status(session, pipeline.schema, controller.config)
        (found,) = (one for one in plain["neighbors"] if one["address"] == str(ROUTER))
        assert found == {"address": str(ROUTER), "port": "uplink", "mac": mac, "state": "installed"}
        values = {
            (sample.name, *sample.labels.values()): sample.value
            for metric in neighbor_metrics({"switch": controller.neighbors})
            for sample in metric.samples
        }
        assert values["frontage_neighbors", "switch", "reachable"] == len(controller.config.wanted)
        assert values["frontage_neighbor_conflicts_total", "switch"] == 1
        assert values["frontage_neighbor_rejected_total", "switch", "port"] == 1
        assert values["frontage_neighbor_requests_total", "switch", "multicast"] > 0
