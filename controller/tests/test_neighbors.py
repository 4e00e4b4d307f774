# SPDX-License-Identifier: Apache-2.0
"""Neighbor resolution without I/O: the frames, the state machine of a neighbor, and the checks of messages."""

from __future__ import annotations

import random
from collections.abc import Iterator
from ipaddress import ip_address, ip_interface
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.all import ARP, Ether, ICMPv6ND_NS, ICMPv6NDOptSrcLLAddr, IPv6, Raw

from frontage.config.links import Link, Resolved, Wanted
from frontage.config.network import Port, Role
from frontage.fields import IPAddress, Mac, parse_mac
from frontage.neighbors import machine
from frontage.neighbors.frames import MIN_FRAME_BYTES, request
from frontage.neighbors.machine import Effect, Neighbor, Request, State
from frontage.neighbors.table import Kind, Message, Rejection, Table

SWITCH_MAC = parse_mac("02:00:00:00:01:01")
OTHER_SWITCH_MAC = parse_mac("02:00:00:00:01:02")
OLD, NEW, THIRD = (Mac(0x020000000300 + n) for n in (1, 2, 3))
HOST, HOST6 = ip_address("192.0.2.9"), ip_address("2001:db8:1::9")
GATEWAY, GATEWAY6 = ip_address("192.0.2.1"), ip_address("2001:db8:1::1")
UPLINK = Port(
    id=1,
    name="uplink",
    role=Role.CLIENT,
    mac=SWITCH_MAC,
    gateways=(ip_interface("192.0.2.1/24"), ip_interface("2001:db8:1::1/64")),
)
RACK = Port(id=2, name="rack", role=Role.SERVER, mac=OTHER_SWITCH_MAC, gateways=(ip_interface("192.0.2.2/24"),))
WANTED = Wanted(HOST, (Link(UPLINK, GATEWAY),))
WANTED6 = Wanted(HOST6, (Link(UPLINK, GATEWAY6),))
ON_TWO_PORTS = Wanted(HOST, (Link(UPLINK, GATEWAY), Link(RACK, ip_address("192.0.2.2"))))
AT_OLD, AT_NEW, AT_THIRD = (Resolved("uplink", mac) for mac in (OLD, NEW, THIRD))
TO_ALL, TO_OLD = Request(HOST, "uplink", None), Request(HOST, "uplink", OLD)


# Frames


@pytest.mark.parametrize("target_mac", [None, OLD])
def test_arp_request_equals_scapy(target_mac: Mac | None) -> None:
    arp = ARP(op=1, hwsrc=str(SWITCH_MAC), psrc=str(GATEWAY), hwdst="00:00:00:00:00:00", pdst=str(HOST))
    expected = Ether(src=str(SWITCH_MAC), dst=str(target_mac or "ff:ff:ff:ff:ff:ff")) / arp
    assert request(GATEWAY, SWITCH_MAC, HOST, target_mac) == bytes(expected).ljust(MIN_FRAME_BYTES, b"\0")


@pytest.mark.parametrize("host", ["2001:db8:1::9", "2001:db8:1::ffff:fffe", "fe80::1"])
@pytest.mark.parametrize("target_mac", [None, OLD])
def test_solicitation_equals_scapy(host: str, target_mac: Mac | None) -> None:
    address = ip_address(host)
    low = int(address) & 0xFFFFFF
    group = ip_address(int(ip_address("ff02::1:ff00:0")) | low)
    mac = target_mac or ":".join(["33", "33", "ff", *(f"{byte:02x}" for byte in low.to_bytes(3, "big"))])
    ip = IPv6(src=str(GATEWAY6), dst=str(group if target_mac is None else address), hlim=255)
    expected = Ether(src=str(SWITCH_MAC), dst=str(mac)) / ip / ICMPv6ND_NS(tgt=host) / ICMPv6NDOptSrcLLAddr(lladdr=str(SWITCH_MAC))
    assert request(GATEWAY6, SWITCH_MAC, address, target_mac) == bytes(expected)


@given(st.integers(0, (1 << 128) - 1), st.integers(0, (1 << 128) - 1))
def test_checksum_of_any_solicitation_is_right(source: int, target: int) -> None:
    frame = request(_ipv6(source), SWITCH_MAC, _ipv6(target), None)
    parsed = Ether(frame)
    del parsed[ICMPv6ND_NS].cksum
    assert bytes(parsed) == frame
    assert not parsed.haslayer(Raw)


def _ipv6(value: int) -> IPAddress:
    return ip_address(value.to_bytes(16, "big"))


def test_request_rejects_addresses_of_different_versions() -> None:
    with pytest.raises(ValueError, match="different IP versions"):
        request(GATEWAY, SWITCH_MAC, HOST6, None)


# The state machine


def neighbor(state: State = State.INCOMPLETE, wanted: Wanted = WANTED) -> Neighbor:
    """Return a neighbor in a state at time 0, with the address `OLD` if the state has one."""
    found = Neighbor(wanted, 0.0, random.Random(1))
    if state is State.STALE:
        found.adopt(AT_OLD, 0.0)
    elif state in (State.REACHABLE, State.PROBE):
        found.on_message(AT_OLD, 0.0, is_answer=True)
        if state is State.PROBE:
            found.poll(found.due)
    elif state is State.FAILED:
        list(run(found, 10.0))
    assert found.state is state
    return found


def run(found: Neighbor, until: float) -> Iterator[tuple[float, Request]]:
    """Yield the requests of a neighbor that hears nothing, with their times."""
    while found.due <= until:
        now = found.due
        yield from ((now, one) for one in found.poll(now))


@pytest.mark.parametrize(
    ("state", "message", "is_answer", "effect", "then"),
    [
        (State.INCOMPLETE, AT_OLD, True, Effect.LEARNED, State.REACHABLE),
        (State.INCOMPLETE, AT_OLD, False, Effect.LEARNED, State.STALE),
        (State.FAILED, AT_OLD, True, Effect.LEARNED, State.REACHABLE),
        (State.STALE, AT_OLD, True, Effect.CONFIRMED, State.REACHABLE),
        (State.STALE, AT_OLD, False, Effect.IGNORED, State.STALE),
        (State.STALE, AT_NEW, True, Effect.CLAIMED, State.STALE),
        (State.REACHABLE, AT_OLD, True, Effect.CONFIRMED, State.REACHABLE),
        (State.REACHABLE, AT_OLD, False, Effect.IGNORED, State.REACHABLE),
        (State.REACHABLE, AT_NEW, True, Effect.CLAIMED, State.REACHABLE),
        (State.REACHABLE, AT_NEW, False, Effect.CLAIMED, State.REACHABLE),
        (State.PROBE, AT_OLD, True, Effect.CONFIRMED, State.REACHABLE),
        (State.PROBE, AT_OLD, False, Effect.IGNORED, State.PROBE),
        (State.PROBE, AT_NEW, True, Effect.CLAIMED, State.PROBE),
    ],
)
def test_message_changes_state(state: State, message: Resolved, is_answer: bool, effect: Effect, then: State) -> None:
    found = neighbor(state)
    now = found.due
    assert found.on_message(message, now, is_answer=is_answer) is effect
    assert found.state is then
    assert found.resolved == AT_OLD


def test_unresolved_neighbor_is_asked_with_back_off() -> None:
    found = neighbor()
    requests = list(run(found, 300.0))
    assert {one for _, one in requests} == {TO_ALL}
    times = [time for time, _ in requests]
    gaps = [after - before for before, after in pairwise(times)]
    assert times[0] == 0
    for number, gap in enumerate(gaps):
        delay = min(machine.MAX_RETRY, machine.FIRST_RETRY * 2**number)
        assert 0.75 * delay <= gap <= 1.25 * delay
    assert found.state is State.FAILED


def test_equal_seeds_give_equal_times() -> None:
    assert list(run(neighbor(), 100.0)) == list(run(neighbor(), 100.0))


def test_reachable_neighbor_is_refreshed_by_unicast_then_multicast_then_fails() -> None:
    found = neighbor(State.REACHABLE)
    first = found.due
    assert 0.5 * machine.REACHABLE_TIME <= first <= 1.5 * machine.REACHABLE_TIME
    assert list(run(found, first + 5.9)) == [(first + i, TO_OLD if i < 3 else TO_ALL) for i in range(6)]
    assert found.resolved == AT_OLD
    found.poll(found.due)
    assert (found.state, found.resolved, found.since) == (State.FAILED, None, first + 6.0)


def test_claim_with_silent_old_address_moves_the_neighbor() -> None:
    found = neighbor(State.REACHABLE)
    found.on_message(AT_NEW, 1.0, is_answer=False)
    requests = list(run(found, 2.0))
    assert requests[:3] == [(pytest.approx(1.0 + i * machine.CLAIM_INTERVAL), TO_OLD) for i in range(3)]
    # The new address is probed at once.
    assert requests[3][1] == Request(HOST, "uplink", NEW)
    assert found.resolved == AT_NEW
    assert found.on_message(AT_NEW, 2.0, is_answer=True) is Effect.CONFIRMED
    assert (found.state, found.conflicts) == (State.REACHABLE, 0)


def test_claim_is_a_conflict_if_the_old_address_answers() -> None:
    found = neighbor(State.REACHABLE)
    found.on_message(AT_NEW, 1.0, is_answer=True)
    assert found.poll(1.0) == [TO_OLD]
    assert found.on_message(AT_THIRD, 1.05, is_answer=True) is Effect.IGNORED
    assert found.on_message(AT_OLD, 1.1, is_answer=True) is Effect.CONFLICT
    assert (found.resolved, found.conflicts, found.claimant, found.state) == (AT_OLD, 1, AT_NEW, State.REACHABLE)
    assert found.on_message(AT_NEW, 1.2, is_answer=True) is Effect.IGNORED
    assert found.on_message(AT_NEW, 1.1 + machine.CLAIM_HOLD, is_answer=True) is Effect.CLAIMED


def test_request_of_the_old_address_does_not_end_a_claim() -> None:
    found = neighbor(State.REACHABLE)
    found.on_message(AT_NEW, 1.0, is_answer=True)
    found.poll(1.0)
    assert found.on_message(AT_OLD, 1.1, is_answer=False) is Effect.IGNORED
    list(run(found, 2.5))
    assert found.resolved == AT_NEW


def test_flood_of_claims_causes_few_probes() -> None:
    found = neighbor(State.REACHABLE)
    probes = 0
    for step in range(1000):
        now = step / 100
        found.on_message(Resolved("uplink", Mac(0x020000001000 + step)), now, is_answer=True)
        if found.poll(now):
            probes += 1
            found.on_message(AT_OLD, now, is_answer=True)
    assert probes <= 3
    assert found.resolved == AT_OLD


def test_silent_neighbor_has_the_address_of_the_host_that_answers_multicast() -> None:
    found = neighbor(State.PROBE)
    list(run(found, found.due + 3.0))
    assert found.on_message(AT_NEW, found.due, is_answer=True) is Effect.MOVED
    assert found.resolved == AT_NEW


def test_neighbor_on_several_ports_is_asked_on_each_and_moves_between_them() -> None:
    found = neighbor(wanted=ON_TWO_PORTS)
    assert [one.port for one in found.poll(0.0)] == ["uplink", "rack"]
    found.on_message(AT_OLD, 0.1, is_answer=True)
    moved = Resolved("rack", OLD)
    assert found.on_message(moved, 1.0, is_answer=False) is Effect.CLAIMED
    assert found.poll(1.0) == [TO_OLD]
    list(run(found, 2.5))
    assert found.resolved == moved


STEP = st.tuples(
    st.floats(0.0, 20.0),
    st.sampled_from([None, AT_OLD, AT_NEW, AT_THIRD, Resolved("rack", OLD)]),
    st.booleans(),
)


@given(st.lists(STEP, max_size=60))
def test_any_sequence_of_messages_keeps_the_invariants(steps: list[tuple[float, Resolved | None, bool]]) -> None:
    found, now = neighbor(wanted=ON_TWO_PORTS), 0.0
    for delay, message, is_answer in steps:
        now += delay
        while found.due <= now:
            at = found.due
            found.poll(at)
            assert found.due > at, "the same request would be sent for ever"
        before, state = found.resolved, found.state
        if message is None:
            continue
        effect = found.on_message(message, now, is_answer=is_answer)
        assert (found.resolved is None) == (found.state in (State.INCOMPLETE, State.FAILED))
        if effect in (Effect.LEARNED, Effect.MOVED):
            assert found.resolved == message
        else:
            assert found.resolved == before, "only a checked claim replaces an address"
        if state is State.REACHABLE and found.state is not State.REACHABLE:
            raise AssertionError("a message never makes a reachable neighbor worse")
        if found.state is State.REACHABLE:
            assert found.due <= now + 1.5 * machine.REACHABLE_TIME


# The table


def table(**wanted: Wanted) -> Table:
    found = Table(seed=1)
    targets = {target.address: target for target in wanted.values()} or {HOST: WANTED, HOST6: WANTED6}
    found.follow([UPLINK, RACK], {GATEWAY, GATEWAY6}, targets, 0.0)
    return found


def message(
    kind: Kind = Kind.ARP_REPLY, port: int = 1, address: IPAddress = HOST, mac: int = OLD, source: int | None = None
) -> Message:
    return Message(kind, port, int(address), mac, mac if source is None else source)


@pytest.mark.parametrize(
    ("said", "effect"),
    [
        (message(), Effect.LEARNED),
        (message(Kind.ARP_REQUEST), Effect.LEARNED),
        (message(Kind.NDP_ADVERTISEMENT, address=HOST6), Effect.LEARNED),
        (message(Kind.NDP_ADVERTISEMENT, address=HOST6, mac=0, source=OLD), Effect.IGNORED),
        (message(address=ip_address("192.0.2.10")), None),
        (message(Kind.NDP_ADVERTISEMENT, address=ip_address("2001:db8:1::10")), None),
        (message(port=2), Rejection.PORT),
        (message(port=3), Rejection.PORT),
        (message(source=NEW), Rejection.SOURCE),
        (message(mac=0x010000000001), Rejection.MAC),
        (message(mac=0), Rejection.MAC),
        (message(mac=SWITCH_MAC), Rejection.MAC),
        (message(mac=OTHER_SWITCH_MAC), Rejection.MAC),
        (message(address=GATEWAY), Rejection.OWN_ADDRESS),
        (message(Kind.NDP_UNSOLICITED, address=GATEWAY6), Rejection.OWN_ADDRESS),
    ],
)
def test_message_is_checked(said: Message, effect: Effect | Rejection | None) -> None:
    found = table()
    assert found.on_message(said, 0.0).effect is effect
    assert found.rejected.total() == isinstance(effect, Rejection)
    assert bool(found.known) == (effect is Effect.LEARNED)
    assert set(found.neighbors) == {HOST, HOST6}


def test_advertisement_without_address_confirms_the_known_one() -> None:
    found = table()
    found.adopt({HOST6: AT_OLD}, 0.0)
    assert found.on_message(message(Kind.NDP_ADVERTISEMENT, address=HOST6, mac=0, source=OLD), 1.0).effect is Effect.CONFIRMED
    assert found.on_message(message(Kind.NDP_ADVERTISEMENT, address=HOST6, mac=0, source=NEW), 1.0).effect is Effect.CLAIMED


def test_adopted_addresses_count_until_probes_fail() -> None:
    found = table()
    found.adopt({HOST: AT_OLD}, 0.0)
    assert found.known == {HOST: AT_OLD}
    assert TO_OLD in found.poll(0.0, 100)
    found.on_message(message(Kind.NDP_ADVERTISEMENT, address=HOST6), 0.1)
    for step in range(1, 80):
        found.poll(step / 10, 100)
    assert found.known == {HOST: None, HOST6: AT_OLD}


def test_addresses_stay_while_no_neighbor_answers_at_all() -> None:
    found = table()
    found.adopt({HOST: AT_OLD, HOST6: AT_NEW}, 0.0)
    requests = [request for step in range(1200) for request in found.poll(step / 10, 100)]
    assert found.known == {HOST: AT_OLD, HOST6: AT_NEW}
    assert 12 < len(requests) <= 60
    found.on_message(message(), 120.0)
    for step in range(1200, 2000):
        found.poll(step / 10, 100)
        if step % 100 == 0:
            found.on_message(message(), step / 10)
    assert found.known == {HOST: AT_OLD, HOST6: None}


def test_adopted_address_replaces_a_known_one_only_on_request() -> None:
    found = table()
    found.on_message(message(), 0.0)
    found.adopt({HOST: AT_NEW}, 1.0)
    assert found.known == {HOST: AT_OLD}
    found.adopt({HOST: AT_NEW}, 1.0, replace=True)
    assert found.known == {HOST: AT_NEW}
    assert found.neighbors[HOST].state is State.STALE


def test_change_of_wanted_addresses_keeps_what_is_known() -> None:
    found = table()
    found.on_message(message(), 0.0)
    found.follow([UPLINK, RACK], set(), {HOST: ON_TWO_PORTS}, 1.0)
    assert found.known == {HOST: AT_OLD}
    assert set(found.neighbors) == {HOST}
    found.follow([UPLINK, RACK], set(), {HOST: Wanted(HOST, ON_TWO_PORTS.links[1:])}, 2.0)
    assert found.known == {}, "the host is no longer behind its port"


def test_many_neighbors_are_asked_a_few_at_a_time() -> None:
    hosts = [ip_address(f"192.0.2.{n}") for n in range(10, 210)]
    found = Table(seed=1)
    found.follow([UPLINK], set(), {host: Wanted(host, WANTED.links) for host in hosts}, 0.0)
    batches = [found.poll(0.0, 64) for _ in range(5)]
    assert [len(batch) for batch in batches] == [64, 64, 64, 8, 0]
    assert {one.address for batch in batches for one in batch} == set(hosts)
    assert found.due > 0


def test_poll_before_the_due_time_does_nothing() -> None:
    found = table()
    assert len(found.poll(0.0, 64)) == 2
    assert found.poll(found.due - 0.01, 64) == []
    assert found.poll(found.due, 64)


MESSAGE = st.builds(
    message,
    st.sampled_from(Kind),
    st.integers(0, 4),
    st.sampled_from([HOST, GATEWAY]),
    st.integers(0, (1 << 48) - 1),
)


@given(st.lists(MESSAGE))
def test_any_messages_keep_the_table_bounded(messages: list[Message]) -> None:
    found = table()
    for number, said in enumerate(messages):
        found.on_message(said, number / 10)
    assert set(found.neighbors) == {HOST, HOST6}
    known = found.known.get(HOST)
    assert known is None or (known.port == "uplink" and not known.mac >> 40 & 1)
