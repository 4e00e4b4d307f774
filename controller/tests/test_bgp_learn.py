# SPDX-License-Identifier: Apache-2.0
"""Learned routes: BGP and BMP messages, acceptance, selection, stale routes, and the entries of the switch."""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
import struct
from collections.abc import Iterable
from dataclasses import replace
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from conftest import EXAMPLE
from frontage.bgp import bmp
from frontage.bgp.acceptance import Acceptance, Rejection
from frontage.bgp.bmp import Malformed, Monitored, PeerDown, PeerUp
from frontage.bgp.frr import Originated, is_stale, monitor_lines, setup_lines
from frontage.bgp.learner import Learner
from frontage.bgp.metrics import learner_metrics
from frontage.bgp.rib import Rib
from frontage.bgp.router import SETTLE_TIME
from frontage.bgp.selection import best
from frontage.bgp.update import GracefulRestart, MalformedError, Update, parse_update
from frontage.bgp.update import Path as Route
from frontage.config import Config, ConfigError, load, loads
from frontage.fields import Mac
from frontage.learned import NOTHING, Learned
from frontage.limits import MAX_ROUTES
from frontage.p4.entries import Action, Key
from frontage.service.controller import Controller
from frontage.service.fleet import Fleet
from frontage.service.route import route_to
from frontage.state.blocks import forwarding, groups
from frontage.state.numbered_groups import number_groups
from frontage.state.reconcile import plan
from live import LIMIT, beside, connected, installed, running, until
from test_neighbors_live import resolve_all

R1, R2, OTHER = ip_address("192.0.2.254"), ip_address("192.0.2.253"), ip_address("192.0.2.99")
SECTION = """
bgp:
  asn: 64512
  router_id: 10.0.254.1
  neighbors:
    - { address: 192.0.2.254, asn: 64513 }
    - { address: 192.0.2.253, asn: 64513 }
  learn:
    ipv4:
      max_routes: 3
      prefixes:
        - { prefix: 100.64.0.0/16, max_length: 32, action: deny }
        - { prefix: 0.0.0.0/0, min_length: 8, max_length: 24 }
"""
TEXT = EXAMPLE.read_text(encoding="utf-8") + SECTION
NET = [ip_network(f"100.{65 + i}.0.0/16") for i in range(6)]
GRACEFUL = GracefulRestart(60, is_restarting=False, preserved=frozenset({4}))


def config_of(text: str = TEXT) -> Config:
    return loads(text, EXAMPLE)


# Messages, as RFC 4271, RFC 4760 and RFC 7854 define them


def attribute(kind: int, value: bytes, flags: int = 0x40) -> bytes:
    return bytes([flags, kind, len(value)]) + value


def update(withdrawn: bytes = b"", attributes: bytes = b"", reached: bytes = b"") -> bytes:
    body = struct.pack("!H", len(withdrawn)) + withdrawn + struct.pack("!H", len(attributes)) + attributes + reached
    return b"\xff" * 16 + struct.pack("!HB", 19 + len(body), 2) + body


AS_PATH = attribute(2, bytes([2, 2]) + struct.pack("!II", 64513, 65000) + bytes([1, 1]) + struct.pack("!I", 1))
IPV4 = update(
    bytes([24, 198, 51, 100]),
    attribute(1, b"\0") + AS_PATH + attribute(3, bytes([192, 0, 2, 254])) + attribute(4, struct.pack("!I", 7)),
    bytes([8, 10, 0]),
)


def test_update_of_ipv4_is_read() -> None:
    found = parse_update(IPV4, as4=True)
    assert found.withdrawn == [ip_network("198.51.100.0/24")]
    assert found.reached == [ip_network("10.0.0.0/8"), ip_network("0.0.0.0/0")]
    assert found.path == Route(R1, as_path=(64513, 65000), sets=1, origin=0, med=7)
    assert found.path.length == 3


def test_update_of_ipv6_is_read() -> None:
    hop, local = ip_address("2001:db8:1::fe").packed, ip_address("fe80::1").packed
    prefix = bytes([48]) + ip_network("2001:db8:7::/48").network_address.packed[:6]
    reach = struct.pack("!HBB", 2, 1, 32) + hop + local + b"\0" + prefix
    unreach = struct.pack("!HB", 2, 1) + bytes([0])
    found = parse_update(update(attributes=attribute(14, reach, 0x80) + attribute(15, unreach, 0x80)), as4=True)
    assert found.reached == [ip_network("2001:db8:7::/48")]
    assert found.withdrawn == [ip_network("::/0")]
    assert found.path is not None
    assert found.path.next_hop == ip_address("2001:db8:1::fe")


def test_other_families_are_ignored_and_long_attributes_are_read() -> None:
    reach = struct.pack("!HBB", 1, 128, 0) + b"\0" + bytes([8, 10])
    long = bytes([0x90, 8]) + struct.pack("!H", 300) + bytes(300)
    found = parse_update(update(attributes=long + attribute(14, reach, 0x80)), as4=True)
    assert (found.reached, found.path) == ([], None)


def test_every_truncated_or_damaged_update_is_malformed_or_read() -> None:
    for length in range(len(IPV4) - 3):
        with pytest.raises(MalformedError):
            parse_update(IPV4[:length], as4=True)
    for at in range(19, len(IPV4)):
        for value in (0, 33, 255):
            with contextlib.suppress(MalformedError):
                parse_update(IPV4[:at] + bytes([value]) + IPV4[at + 1 :], as4=True)
    with pytest.raises(MalformedError, match="no next hop"):
        parse_update(update(attributes=AS_PATH, reached=bytes([0])), as4=True)


def peer_header(address: str, flags: int = 0) -> bytes:
    packed = ip_address(address).packed
    return bytes([0, flags | (0x80 if len(packed) == 16 else 0)]) + bytes(8) + packed.rjust(16, b"\0") + bytes(16)


def opened(capabilities: bytes) -> bytes:
    body = bytes([4]) + struct.pack("!HH4s", 64513, 9, bytes(4)) + bytes([len(capabilities)]) + capabilities
    return b"\xff" * 16 + struct.pack("!HB", 19 + len(body), 1) + body


def test_messages_of_bmp_are_read() -> None:
    restart = bytes([2, 8, 64, 6]) + struct.pack("!HHBB", 0x8000 | 120, 1, 1, 0x80)
    up = bytes(20) + opened(b"") + opened(restart)
    header = peer_header("192.0.2.254")
    assert bmp.parse(3, header + up) == PeerUp(R1, GracefulRestart(120, is_restarting=True, preserved=frozenset({4})))
    unknown = b"\xff" * 16 + struct.pack("!HB", 19, 1)
    assert bmp.parse(3, header + bytes(20) + unknown + unknown) == PeerUp(R1, None)
    assert bmp.parse(2, header + bytes([4])) == PeerDown(R1, 4)
    found = bmp.parse(0, header + IPV4)
    assert isinstance(found, Monitored)
    assert found.update.reached[0] == ip_network("10.0.0.0/8")
    assert isinstance(bmp.parse(0, peer_header("2001:db8:1::fe") + IPV4[:-1]), Monitored | Malformed)
    assert isinstance(bmp.parse(0, header + IPV4[:30]), Malformed)
    assert bmp.parse(4, b"anything") is None
    with pytest.raises(MalformedError):
        bmp.parse(0, header[:-1])


async def test_stream_that_is_not_bmp_is_rejected() -> None:
    async def read(data: bytes) -> object:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        return await bmp.read(reader)

    body = peer_header("192.0.2.254") + bytes([1])
    assert await read(struct.pack("!BIB", 3, 6 + len(body), 2) + body) == PeerDown(R1, 1)
    for wrong in (b"HTTP/1.1 400", struct.pack("!BIB", 3, 5, 2), struct.pack("!BIB", 3, 1 << 20, 2)):
        with pytest.raises(MalformedError):
            await read(wrong)
    with pytest.raises(asyncio.IncompleteReadError):
        await read(struct.pack("!BIB", 3, 100, 2))


# Selection and acceptance


def test_best_paths_follow_the_decision_process() -> None:
    one = Route(R1, as_path=(1, 2), origin=0)
    two = replace(one, next_hop=R2, as_path=(3, 2))
    assert best([one, two], 8) == (R2, R1), "different AS numbers of the same length are equal"
    assert best([one, two], 1) == (R2,)
    assert best([one, replace(two, as_path=(3, 2, 2))], 8) == (R1,)
    assert best([one, replace(two, as_path=(3,), sets=1)], 8) == (R2, R1)
    assert best([one, replace(two, origin=2)], 8) == (R1,)
    assert best([one, replace(two, as_path=(3, 2, 2), local_pref=200)], 8) == (R2,)
    assert best([one, replace(two, med=5)], 8) == (R2, R1), "MED counts within a neighboring AS only"
    assert best([one, replace(two, med=5, as_path=(1, 9))], 8) == (R1,)
    assert best([], 8) == ()


@pytest.mark.parametrize(
    ("prefix", "hop", "reason"),
    [
        ("100.65.0.0/16", "192.0.2.254", None),
        ("100.65.0.0/25", "192.0.2.254", Rejection.PREFIX_LIST),
        ("0.0.0.0/0", "192.0.2.254", Rejection.PREFIX_LIST),
        ("100.64.8.0/24", "192.0.2.254", Rejection.PREFIX_LIST),
        ("2001:db8:7::/48", "2001:db8:1::fe", Rejection.FAMILY),
        ("224.0.0.0/8", "192.0.2.254", Rejection.MARTIAN),
        ("127.0.0.0/8", "192.0.2.254", Rejection.MARTIAN),
        ("192.0.2.0/24", "192.0.2.254", Rejection.OWN_LINK),
        ("100.65.0.0/16", "192.0.2.99", Rejection.NEXT_HOP),
        ("100.65.0.0/16", "203.0.113.1", Rejection.NEXT_HOP),
    ],
)
def test_routes_are_accepted_or_rejected_for_a_reason(prefix: str, hop: str, reason: Rejection | None) -> None:
    assert Acceptance(config_of()).reject(ip_network(prefix), Route(ip_address(hop))) is reason


# The routes of routers over time


def announce(rib: Rib, router: object, prefixes: Iterable[object], now: float, **attributes: object) -> None:
    path = Route(router, as_path=(64512, 64513), **attributes)  # type: ignore[arg-type]
    rib.process(Monitored(router, Update(reached=list(prefixes), path=path)), now)  # type: ignore[arg-type]


def started(restart: GracefulRestart | None = None) -> Rib:
    rib = Rib(config_of(), 0.0)
    for router in (R1, R2):
        rib.process(PeerUp(router, restart), 0.0)
        announce(rib, router, NET[:2], 0.0)
    rib.expire(SETTLE_TIME)
    return rib


def test_routes_of_both_routers_share_a_group_of_next_hops() -> None:
    rib = started()
    assert rib.learned() == Learned({NET[0]: (R2, R1), NET[1]: (R2, R1)})
    rib.process(Monitored(R1, Update(withdrawn=[NET[0]])), 9.0)
    assert rib.learned().routes == {NET[0]: (R2,), NET[1]: (R2, R1)}
    assert rib.counts == {4: 2, 6: 0}


def test_routes_are_incomplete_until_the_routers_have_settled() -> None:
    rib = Rib(config_of(), 0.0)
    assert not rib.learned().is_complete
    rib.process(PeerUp(R1, None), 1.0)
    announce(rib, R1, NET[:2], 1.0)
    rib.process(Monitored(R1, Update(withdrawn=[NET[1]])), 1.5)
    rib.expire(1.5 + SETTLE_TIME)
    found = rib.learned()
    assert not found.is_complete, "the other router has no session yet"
    assert found.withdrawn == {NET[1]}
    rib.expire(120.0)
    assert rib.learned() == Learned({NET[0]: (R1,)})


def test_router_leaves_groups_before_its_routes_go() -> None:
    rib = started()
    rib.process(PeerDown(R1, 1), 10.0)
    assert rib.has_fallen
    found = rib.learned()
    assert (found.routes[NET[0]], found.down) == ((R2, R1), {R1})
    rib.take_down()
    assert rib.learned() == Learned({NET[0]: (R2,), NET[1]: (R2,)})
    assert not rib.has_fallen
    announce(rib, R1, NET[:1], 11.0)
    assert rib.learned().routes[NET[0]] == (R2,), "the session has ended"


def test_routes_stay_while_a_router_restarts() -> None:
    rib = started(GRACEFUL)
    rib.process(PeerDown(R1, 4, is_restart=True), 10.0)
    assert not rib.has_fallen
    assert rib.learned().routes[NET[0]] == (R2, R1)
    assert rib.routers[R1].stale == 2
    assert rib.due == 70.0
    rib.process(PeerUp(R1, replace(GRACEFUL, is_restarting=True)), 20.0)
    announce(rib, R1, NET[:1], 21.0)
    assert [*rib.unconfirmed(21.0 + SETTLE_TIME)] == [(R1, NET[1])]
    rib.postpone(R1, 21.0 + SETTLE_TIME)
    rib.expire(21.0 + SETTLE_TIME)
    assert rib.learned().routes[NET[1]] == (R2, R1)
    rib.expire(21.0 + 2 * SETTLE_TIME)
    assert rib.learned() == Learned({NET[0]: (R2, R1), NET[1]: (R2,)})


def test_routes_go_if_a_router_does_not_return_or_did_not_forward() -> None:
    rib = started(GRACEFUL)
    rib.process(PeerDown(R1, 4, is_restart=True), 10.0)
    rib.expire(69.9)
    assert rib.learned().routes[NET[0]] == (R2, R1)
    rib.expire(70.0)
    assert rib.learned().routes[NET[0]] == (R2,)
    rib = started(GRACEFUL)
    rib.process(PeerDown(R1, 4, is_restart=True), 10.0)
    rib.process(PeerUp(R1, GracefulRestart(60, is_restarting=True, preserved=frozenset())), 11.0)
    assert rib.learned().routes[NET[0]] == (R2,)


def test_routes_stay_while_frr_restarts() -> None:
    rib = started()
    rib.disconnected(10.0)
    rib.process(PeerDown(R1, 2), 11.0)  # FRR has just begun to call
    assert rib.learned() == Learned({NET[0]: (R2, R1), NET[1]: (R2, R1)})
    for router in (R1, R2):
        rib.process(PeerUp(router, None), 12.0)
    announce(rib, R1, NET[:2], 12.0)
    rib.expire(12.0 + SETTLE_TIME)
    assert rib.learned() == Learned({NET[0]: (R1,), NET[1]: (R1,)})
    rib.disconnected(20.0)
    rib.expire(139.9)
    assert rib.learned().routes
    rib.expire(140.0)
    assert not rib.learned().routes
    assert math.isinf(rib.due)


def test_router_that_frr_has_lost_falls() -> None:
    rib = started()
    assert not rib.lost(R1, 9.0), "there is a session"
    rib.disconnected(10.0)
    assert rib.lost(R1, 11.0)
    assert not rib.lost(R1, 12.0)
    rib.take_down()
    assert rib.learned().routes[NET[0]] == (R2,)


def test_further_routes_are_rejected_until_there_is_room() -> None:
    rib = started()
    announce(rib, R1, NET[2:5], 10.0)
    assert rib.counts[4] == 3
    assert rib.rejected[R1, Rejection.LIMIT] == 2
    announce(rib, R2, NET[:3], 10.0)
    assert rib.rejected[R2, Rejection.LIMIT] == 0, "these prefixes are known"
    assert not rib.wants_refresh
    for router in (R1, R2):
        rib.process(Monitored(router, Update(withdrawn=[NET[0]])), 11.0)
    assert rib.wants_refresh
    rib.refreshing()
    assert not rib.wants_refresh


def test_rejected_route_replaces_an_accepted_one_and_lookup_finds_the_longest() -> None:
    rib = started()
    announce(rib, R1, [ip_network("100.65.7.0/24")], 10.0)
    assert rib.lookup(ip_address("100.65.7.1")) == ip_network("100.65.7.0/24")
    assert rib.lookup(ip_address("100.65.8.1")) == NET[0]
    assert rib.lookup(ip_address("::6441:701")) is None
    rib.process(Monitored(R1, Update(reached=[NET[0]], path=Route(OTHER))), 11.0)
    assert rib.learned().routes[NET[0]] == (R2,)


def test_changed_prefix_list_removes_routes() -> None:
    rib = started()
    rib.follow(config_of(TEXT.replace("100.64.0.0/16, max_length", "100.65.0.0/16, max_length")), 10.0)
    assert rib.learned().routes == {NET[1]: (R2, R1)}
    rib.follow(config_of(TEXT.replace("    - { address: 192.0.2.253, asn: 64513 }\n", "")), 11.0)
    assert rib.learned().routes == {NET[1]: (R1,)}


# Entries


def test_groups_keep_their_numbers() -> None:
    ids = {R1: 1, R2: 2, OTHER: 3}
    pairs = Learned({NET[0]: (R2, R1), NET[1]: (R2, OTHER), NET[2]: (R1,)})
    numbers = number_groups(pairs, ids, {}, {})
    assert len(set(numbers.values())) == 2
    assert 0 not in numbers.values()
    state = groups.entries(numbers, pairs, ids)
    assert state[Key(groups.MEMBERS, (numbers[R2, R1],))] == Action("set_next_hop", (2, 1))
    assert number_groups(pairs, ids, {}, state) == numbers, "a restarted controller finds them again"
    down = replace(pairs, down=frozenset({R2}))
    assert number_groups(down, ids, numbers, state) == numbers
    changed = groups.entries(numbers, down, ids)
    assert changed[Key(groups.MEMBERS, (numbers[R2, R1],))] == Action("set_next_hop", (1,))
    assert groups.entries(numbers, pairs, {R1: 1}) == {Key(groups.MEMBERS, (numbers[R2, R1],)): Action("set_next_hop", (1,))}


def test_routes_without_room_for_a_group_use_one_next_hop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontage.limits.MAX_GROUPS", 2)
    ids = {R1: 1, R2: 2, OTHER: 3}
    learned = Learned({NET[0]: (R2, R1), NET[1]: (R2, OTHER), NET[2]: (OTHER,), NET[3]: (ip_address("192.0.2.50"),)})
    numbers = number_groups(learned, ids, {}, {})
    assert numbers == {(R2, R1): 1}
    state = forwarding.learned_entries(learned, numbers, ids)
    found = [state[forwarding.prefix_key(net)] for net in NET[:4]]
    assert found == [Action("set_group", (1,)), *(Action("set_next_hop", (hop,)) for hop in (2, 3, forwarding.UNRESOLVED))]


# A switch


async def learn(controller: Controller, learned: Learned) -> None:
    await controller.learn(learned)
    async with asyncio.timeout(LIMIT):
        await controller.installed()


async def state_of(controller: Controller) -> dict[Key, Action]:
    session, pipeline = connected(controller)
    return (await plan(session, pipeline.schema, controller.config)).installed


def hops_of(state: dict[Key, Action], key: Key) -> list[Mac]:
    """Return the Ethernet addresses of the next hops of a route."""
    action = state[key]
    ids = state[Key(groups.MEMBERS, action.params)].params if action.name == "set_group" else action.params
    return [Mac(state[Key(forwarding.NEXT_HOP, (number,))].params[2]) for number in ids]


async def test_learned_routes_are_installed_changed_and_recovered(config_file: Path) -> None:
    config_file.write_text(config_file.read_text() + SECTION)
    config = load(config_file)
    both = Learned({NET[0]: (R2, R1), NET[1]: (R2, R1), ip_network("198.51.100.0/24"): (R2,)})
    route = forwarding.prefix_key
    async with running(config) as controller:
        await installed(controller)
        await resolve_all(controller)
        macs = {
            address: neighbor.resolved.mac
            for address, neighbor in controller.neighbors.table.neighbors.items()
            if neighbor.resolved
        }
        await learn(controller, both)
        assert controller.health.last is not None
        assert controller.health.last.inserted == 3, "one group, and two routes: the static route comes first"
        state = await state_of(controller)
        assert hops_of(state, route(NET[0])) == [macs[R2], macs[R1]]
        assert hops_of(state, route(ip_network("198.51.100.0/24"))) == [macs[R1]], "as the file says"
        await learn(controller, replace(both, down=frozenset({R1})))
        assert (controller.health.last.inserted, controller.health.last.modified, controller.health.last.deleted) == (0, 1, 0)
        assert hops_of(await state_of(controller), route(NET[1])) == [macs[R2]]
        await learn(controller, Learned({NET[0]: (R2,), NET[1]: (R2,)}))
        assert (controller.health.last.modified, controller.health.last.deleted) == (2, 1)
        await learn(controller, both)
    async with running(config) as controller:
        async with asyncio.timeout(LIMIT):
            await controller.installed()
        state = await state_of(controller)
        assert hops_of(state, route(NET[0])) == [macs[R2], macs[R1]], "the routers may still announce it"
        await learn(controller, Learned({NET[1]: (R2, R1)}, is_complete=False, withdrawn=frozenset({NET[2]})))
        assert (await state_of(controller)).keys() == state.keys()
        await learn(controller, Learned({NET[1]: (R2, R1)}))
        assert route(NET[0]) not in await state_of(controller)
        assert (await state_of(controller))[route(NET[1])] == state[route(NET[1])], "the group keeps its number"
        await learn(controller, Learned())
        assert not [key for key in await state_of(controller) if key.table == groups.MEMBERS]


# FRR and the file


def test_frr_offers_its_routes_and_keeps_them_out_of_the_kernel() -> None:
    config = config_of()
    assert config.bgp is not None
    assert config.bgp.learn is not None
    found = list(setup_lines(config.bgp, {}, Originated()))
    assert "route-map frontage-in permit 10" in found
    assert found.count("  table-map frontage-rib") == 2
    assert "  bmp listener 127.0.0.1 port 11019" in list(monitor_lines(config.bgp, config.bgp.learn))
    elsewhere = Originated(listeners=frozenset({"127.0.0.1 port 5000"}))
    assert " no bmp targets frontage" in list(setup_lines(config.bgp, {}, elsewhere))
    assert " no bmp targets frontage" not in list(
        setup_lines(config.bgp, {}, Originated(listeners=frozenset({"127.0.0.1 port 11019"})))
    )


def test_stale_paths_are_recognised() -> None:
    route = {"paths": [{"peer": {"peerId": "192.0.2.254"}, "stale": True}, {"peer": {"peerId": "192.0.2.253"}}]}
    assert is_stale(route, R1)
    assert not is_stale(route, R2)
    assert not is_stale({}, R1)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("    ipv4:", "    ipv6:", "bgp.learn.ipv6.prefixes[0].prefix: 100.64.0.0/16 is not an IPv6 prefix: move it to `ipv4`"),
        (
            "min_length: 8, max_length: 24",
            "min_length: 24, max_length: 8",
            "prefixes[1]: lengths from 24 to 8 do not fit 0.0.0.0/0",
        ),
        (
            "max_length: 32",
            "max_length: 33",
            "lengths from 16 to 33 do not fit 100.64.0.0/16: use 16 <= min_length <= max_length <= 32",
        ),
        ("max_routes: 3", f"max_routes: {MAX_ROUTES}", "others of switch exceed the table of 16384: use at most "),
        ("action: deny", "action: drop", 'unknown action "drop": use one of permit, deny'),
        ("  learn:\n    ipv4:", "  learn:\n    max_paths: 65\n    ipv4:", 'bgp.learn.max_paths: "65" is above the maximum of 64'),
        (SECTION[SECTION.index("    ipv4:") :], "    max_paths: 2\n", "bgp.learn: neither `ipv4` nor `ipv6`"),
    ],
)
def test_invalid_sections_are_rejected(old: str, new: str, problem: str) -> None:
    assert old in TEXT
    with pytest.raises(ConfigError, match=re.escape(problem)):
        config_of(TEXT.replace(old, new, 1))


# The learner, with a server of BMP that is not FRR's


def framed(kind: int, body: bytes) -> bytes:
    return struct.pack("!BIB", 3, 6 + len(body), kind) + body


async def test_learner_reads_and_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fleet, "primary", True)
    writers: list[asyncio.StreamWriter] = []

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        header = peer_header("192.0.2.254")
        writer.write(framed(4, b"") + framed(3, header + bytes(20) + opened(b"") + opened(b"")) + framed(0, header + IPV4))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    text = TEXT.replace("  learn:\n", f"  learn:\n    bmp: 127.0.0.1:{port}\n")
    fleet = Fleet(loads(text, EXAMPLE))
    (controller,) = fleet.controllers.values()
    learner = Learner(fleet, dict)
    async with server, beside(learner.run()):
        await until(lambda: bool(controller.learned.routes))
        assert controller.learned.routes == {ip_network("10.0.0.0/8"): (R1,)}
        found = learner.explain(ip_address("10.1.2.3"))["switch"]
        assert (found["prefix"], found["next_hops"], found["paths"][0]["as_path"]) == (
            "10.0.0.0/8",
            ["192.0.2.254"],
            [64513, 65000],
        )
        explained = route_to(fleet.config, ip_address("10.1.2.3"), {"switch": found})
        assert explained["route"] == {"prefix": "10.0.0.0/8", "source": "learned", "port": None, "next_hops": ["192.0.2.254"]}
        assert route_to(fleet.config, ip_address("198.51.100.1"), {})["route"]["source"] == "static"
        assert route_to(fleet.config, ip_address("10.0.0.11"), {})["route"]["source"] == "link"
        assert route_to(fleet.config, ip_address("8.8.8.8"), {})["route"] is None
        samples = {(s.name, *s.labels.values()): s.value for m in learner_metrics(learner) for s in m.samples}
        assert samples["frontage_bgp_learned_routes", "switch", "ipv4"] == 1
        assert samples["frontage_bgp_learned_paths", "switch", "192.0.2.254"] == 1
        assert samples["frontage_bgp_rejected_routes_total", "switch", "prefix list"] == 1, "the default route"
        assert samples["frontage_bgp_learn_error",] == 0
        # The router's routes go after its session.
        writers[0].write(framed(2, peer_header("192.0.2.254") + bytes([3])))
        await until(lambda: not controller.learned.routes)
        # Without the section, there is nothing to learn.
        await fleet.change(loads(EXAMPLE.read_text(encoding="utf-8"), EXAMPLE))
        await until(lambda: controller.learned is NOTHING)
        assert learner.describe() is None


async def test_learner_reports_missing_bmp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fleet, "primary", True)
    learner = Learner(Fleet(loads(TEXT.replace("  learn:\n", "  learn:\n    bmp: 127.0.0.1:1\n"), EXAMPLE)), dict)
    async with beside(learner.run()):
        await until(lambda: learner.error is not None)
    assert learner.error is not None
    assert learner.error.endswith("start bgpd with the option -M bmp, or correct bgp.learn.bmp")
