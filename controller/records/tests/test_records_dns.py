# SPDX-License-Identifier: Apache-2.0
"""The DNS zone, queried by dnspython over UDP and TCP, and with malformed input."""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import AsyncIterator, Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import dns.asyncquery
import dns.edns
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.query
import dns.rcode
import dns.rdatatype
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from frontage.config.records import Dns
from frontage.mapping.compute.prefixes import parse
from frontage.mapping.compute.values import Sample
from frontage.mapping.settings import EndUsers
from frontage.mapping.store.latency import EXPIRED_RETENTION
from frontage.mapping.store.store import Store
from frontage.naming import ServicePrefix
from frontage_records import http
from frontage_records.client import RecordClient
from frontage_records.dns.measured import MeasuredRegions
from frontage_records.dns.regions import Subnet, SubnetError
from frontage_records.dns.server import Server
from frontage_records.dns.zone import HEADER, Zone
from frontage_records.embedded import Embedded, create
from frontage_records.errors import EngineError, NotFoundError
from frontage_records.record import DEFAULT_BOUNDS
from frontage_records.ring import Ring

SETTINGS = Dns(
    zone="example",
    listen="127.0.0.1:0",
    name_servers=("ns1.example", "ns2.example"),
    contact="hostmaster.example",
    regions={ip_network("198.51.100.0/24"): (2, 1), ip_network("198.51.0.0/16"): (1,), ip_network("2001:db8::/32"): (2,)},
)
RECORDS: dict[str, dict[str, Any]] = {
    "films.example": {
        "address": [
            {"ip": "192.0.2.1", "site": 1},
            {"ip": "192.0.2.2", "site": 2},
            {"ip": "2001:db8::2", "site": 2},
            {"ip": "192.0.2.9"},
        ],
        "text": ["hello", "ä" * 200],
        "ttl": 7,
    },
    "one.example": {"address": "2001:db8::7"},
    "hashed.example": {"address": ["2001:db8:a::1", "198.51.100.7"], "https": {"alpn": ["h3"]}},
    "_8443._https.hashed.example": {"https": {"target": "hashed.example", "alpn": ["h3", "h2"], "port": 8443}},
    "alias.example": {"https": {"priority": 0, "target": "hashed.example"}, "svcb": {"priority": 0, "target": "hashed.example"}},
    "near.example": {"address": [{"ip": "192.0.2.1", "site": 1}, {"ip": "192.0.2.2", "site": 2}], "https": {"alpn": ["h3"]}},
    "_sip._udp.films.example": {"service": [{"port": 5060, "target": "one.example", "priority": 1}]},
    "big.example": {"text": [f"{number} " + "x" * 200 for number in range(10)]},
    "huge.example": {"text": [f"{number} " + "x" * 250 for number in range(200)]},
    "bad.example": {"address": "nowhere"},
    "worse.example": {"service": [{"port": "http", "target": 7}], "address": {"site": 1}},
    "strange.example": {"service": "x"},
    "long.example": {"service": {"port": 1, "target": "x" * 70}},
    "number.example": {"address": 5},
    "forever.example": {"ttl": -1, "address": "192.0.2.1"},
}


async def find(guid: str) -> Mapping[str, Any]:
    if guid == "down.example":
        raise EngineError("down")
    if guid not in RECORDS:
        raise NotFoundError(guid)
    return RECORDS[guid]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """A DNS server in front of a record server, over HTTP."""
    create(tmp_path / "records.db")
    store = await Embedded.open(tmp_path / "records.db", 1, DEFAULT_BOUNDS)
    runner = await http.start(store, Ring([1], 3), "127.0.0.1", 0)
    async with RecordClient("http://{}:{}".format(*runner.addresses[0][:2])) as client:
        for guid, value in RECORDS.items():
            await client.put(guid, value)
        found = await Server.start(SETTINGS, client)
        yield found
        await found.close()
    await store.close()
    await runner.cleanup()


async def ask(server: Server, name: str, kind: str, **options: Any) -> dns.message.Message:
    query = dns.message.make_query(name, kind, **options)
    host, port = server.address
    answer, _ = await dns.asyncquery.udp_with_fallback(query, host, port=port, timeout=10)
    return answer


def texts(answer: dns.message.Message) -> set[str]:
    return {str(data) for rrset in answer.answer for data in rrset}


def counted(server: Server, transport: str, result: str) -> float:
    found = server.registry.get_sample_value("frontage_records_dns_queries_total", {"transport": transport, "result": result})
    return found or 0.0


async def test_addresses_texts_and_services(server: Server) -> None:
    answer = await ask(server, "films.example", "A")
    assert answer.rcode() == dns.rcode.NOERROR
    assert answer.flags & dns.flags.AA
    assert texts(answer) == {"192.0.2.1", "192.0.2.2", "192.0.2.9"}
    assert answer.answer[0].ttl == 7
    assert texts(await ask(server, "one.example", "AAAA")) == {"2001:db8::7"}
    assert texts(await ask(server, "_sip._udp.films.example", "SRV")) == {"1 0 5060 one.example."}
    (texted,) = (await ask(server, "films.example", "TXT")).answer
    assert [b"".join(data.strings) for data in texted] == [b"hello", ("ä" * 200).encode()]


async def test_https_and_svcb_records(server: Server) -> None:
    assert texts(await ask(server, "hashed.example", "HTTPS")) == {'1 . alpn="h3" ipv4hint="198.51.100.7" ipv6hint="2001:db8:a::1"'}
    assert texts(await ask(server, "_8443._https.hashed.example", "HTTPS")) == {'1 hashed.example. alpn="h3,h2" port="8443"'}
    for kind in ("HTTPS", "SVCB"):
        assert texts(await ask(server, "alias.example", kind)) == {"0 hashed.example."}
    subnet = dns.edns.ECSOption("198.51.100.0", 24)
    assert texts(await ask(server, "near.example", "HTTPS", options=[subnet])) == {'1 . alpn="h3" ipv4hint="192.0.2.2"'}


@pytest.mark.parametrize(
    "https",
    [
        {"alpn": "h3"},
        {"alpn": [""]},
        {"port": 65536},
        {"priority": "1"},
        {"priority": 0},
        {"priority": 0, "target": "a.example", "port": 1},
        {"ech": "abc"},
        "h3",
        {"target": "x" * 64},
    ],
)
async def test_invalid_https_members_fail(https: object) -> None:
    async def one(_guid: str) -> Mapping[str, Any]:
        return {"https": https}

    query = dns.message.make_query("a.example", "HTTPS").to_wire()
    answer = await Zone(SETTINGS, one).answer(query, ip_network("192.0.2.1"), udp=True)
    assert answer.result == "bad_record"


async def test_dns_and_name_hashing_clients_get_the_same_address(server: Server) -> None:
    """One record serves both kinds of clients (docs/naming.md)."""
    name = "films-by-hash.example"
    address = ServicePrefix.parse("2001:db8:a::/48+16").service_address(name)
    await server._client.put(name, {"address": str(address)})
    assert texts(await ask(server, name, "AAAA")) == {str(address)}
    # Letter case makes no difference to either.
    assert ServicePrefix.parse("2001:db8:a::/48+16").service_address(name.upper()) == address
    assert texts(await ask(server, name.upper(), "AAAA")) == {str(address)}


async def test_names_are_case_insensitive_and_answers_keep_case(server: Server) -> None:
    answer = await ask(server, "FiLmS.eXample", "A")
    assert len(texts(answer)) == 3
    assert answer.answer[0].name.to_text() == "FiLmS.eXample."


async def test_missing_names_and_types(server: Server) -> None:
    answer = await ask(server, "missing.example", "A")
    assert answer.rcode() == dns.rcode.NXDOMAIN
    (soa,) = answer.authority
    assert (soa.name.to_text(), soa.ttl, soa[0].minimum, soa[0].mname.to_text()) == ("example.", 5, 5, "ns1.example.")
    answer = await ask(server, "one.example", "A")
    assert (answer.rcode(), answer.answer, len(answer.authority)) == (dns.rcode.NOERROR, [], 1)
    assert counted(server, "udp", "nxdomain") == counted(server, "udp", "nodata") == 1


async def test_zone_apex(server: Server) -> None:
    assert texts(await ask(server, "example", "NS")) == {"ns1.example.", "ns2.example."}
    (soa,) = (await ask(server, "example", "SOA")).answer
    assert soa[0].rname.to_text() == "hostmaster.example."
    assert (await ask(server, "example", "A")).rcode() == dns.rcode.NOERROR


@pytest.mark.parametrize("name", ["example.org", "notexample", ".", "films.example.com"])
async def test_names_outside_zone_are_refused(server: Server, name: str) -> None:
    answer = await ask(server, name, "A")
    assert (answer.rcode(), answer.flags & dns.flags.AA) == (dns.rcode.REFUSED, 0)
    assert counted(server, "udp", "refused") == 1


async def test_other_classes_opcodes_and_transfers(server: Server) -> None:
    assert (await ask(server, "films.example", "A", rdclass="CH")).rcode() == dns.rcode.REFUSED
    query = dns.message.make_query("films.example", "A")
    query.set_opcode(dns.opcode.STATUS)
    host, port = server.address
    assert (await dns.asyncquery.udp(query, host, port=port, timeout=10)).rcode() == dns.rcode.NOTIMP
    query = dns.message.make_query("example", "AXFR")
    assert (await dns.asyncquery.tcp(query, host, port=port, timeout=10)).rcode() == dns.rcode.REFUSED


async def test_any_returns_one_rrset(server: Server) -> None:
    assert len({rrset.rdtype for rrset in (await ask(server, "films.example", "ANY")).answer}) == 1


@pytest.mark.parametrize(
    ("name", "most", "truncated"), [("big.example", None, True), ("big.example", 4096, True), ("films.example", 1232, False)]
)
async def test_long_answers_are_truncated_on_udp_and_whole_on_tcp(
    server: Server, name: str, most: int | None, truncated: bool
) -> None:
    options: dict[str, Any] = {"use_edns": False} if most is None else {"use_edns": 0, "payload": most}
    query = dns.message.make_query(name, "TXT", **options)
    host, port = server.address
    answer, used_tcp = await dns.asyncquery.udp_with_fallback(query, host, port=port, timeout=10)
    assert (used_tcp, len(texts(answer)) > 0) == (truncated, True)
    short = await dns.asyncquery.udp(query, host, port=port, timeout=10)
    assert bool(short.flags & dns.flags.TC) == truncated
    assert not (truncated and short.answer)


async def test_longest_answer_on_tcp(server: Server) -> None:
    host, port = server.address
    answer = await dns.asyncquery.tcp(dns.message.make_query("huge.example", "TXT"), host, port=port, timeout=10)
    assert len(answer.answer[0]) == 200
    assert not answer.flags & dns.flags.TC


async def test_unknown_edns_version_is_rejected(server: Server) -> None:
    answer = await ask(server, "films.example", "A", use_edns=1)
    assert (answer.rcode(), answer.edns, answer.answer) == (dns.rcode.BADVERS, 0, [])


@pytest.mark.parametrize(
    ("subnet", "addresses", "scope"),
    [
        ("198.51.100.7/32", {"192.0.2.2", "192.0.2.9"}, 24),
        ("198.51.7.0/24", {"192.0.2.1", "192.0.2.9"}, 16),
        ("203.0.113.0/24", {"192.0.2.1", "192.0.2.2", "192.0.2.9"}, 0),
        ("0.0.0.0/0", {"192.0.2.1", "192.0.2.2", "192.0.2.9"}, 0),
    ],
)
async def test_client_subnet_selects_nearest_address(server: Server, subnet: str, addresses: set[str], scope: int) -> None:
    net = ip_network(subnet)
    option = dns.edns.ECSOption(str(net.network_address), net.prefixlen)
    answer = await ask(server, "films.example", "A", use_edns=0, options=[option])
    assert texts(answer) == addresses
    (back,) = answer.options
    assert isinstance(back, dns.edns.ECSOption)
    assert (back.address, back.srclen, back.scopelen) == (str(net.network_address), net.prefixlen, scope)


async def test_regions_follow_end_user_mapping(server: Server, tmp_path: Path) -> None:
    async def nearest(subnet: str) -> tuple[set[str], int]:
        net = ip_network(subnet)
        option = dns.edns.ECSOption(str(net.network_address), net.prefixlen)
        answer = await ask(server, "films.example", "A", use_edns=0, options=[option])
        (back,) = answer.options
        assert isinstance(back, dns.edns.ECSOption)
        return texts(answer), int(back.scopelen)

    def measure(prefix: str, *rtts: float, now: float = 1000.0) -> None:
        store.add_samples([Sample(parse(prefix), site, rtt) for site, rtt in enumerate(rtts, 1)], now)

    one, two, all_ = {"192.0.2.1", "192.0.2.9"}, {"192.0.2.2", "192.0.2.9"}, {"192.0.2.1", "192.0.2.2", "192.0.2.9"}
    settings, clock = EndUsers(store=f"sqlite:///{tmp_path}/later/mapping.db"), [0.0]
    mapped = MeasuredRegions(settings, (1, 2), server.registry, clock=lambda: clock[0])
    await mapped.step(server.zone.regions)
    assert server.registry.get_sample_value("frontage_records_dns_mapping_failures_total") == 1
    (tmp_path / "later").mkdir()
    store = Store(settings.store)
    measure("203.0.113.0/24", 20_000.0, 10_000.0)
    measure("127.0.0.0/24", 10_000.0, 20_000.0)
    # Configured regions override measured ones.
    measure("198.51.100.0/24", 10_000.0, 20_000.0)
    await mapped.step(server.zone.regions)
    assert await nearest("203.0.113.7/32") == (two, 24)
    assert await nearest("198.51.100.7/32") == (two, 24)
    # Without a client subnet, the resolver's address counts.
    assert texts(await ask(server, "films.example", "A")) == one
    # Changes are followed; a longer prefix inherits missing RTTs from the shorter one.
    measure("203.0.113.0/24", 5_000.0)
    measure("203.0.113.128/25", 50_000.0)
    await mapped.step(server.zone.regions)
    assert await nearest("203.0.113.7/32") == (one, 24)
    assert await nearest("203.0.113.200/32") == (two, 25)
    assert await nearest("192.0.2.0/24") == (all_, 0)
    # After expiry of a prefix, the shorter prefix counts.
    measure("203.0.113.0/24", 5_000.0, 20_000.0, now=5000.0)
    store.expire(5000.0, 1000.0)
    await mapped.step(server.zone.regions)
    assert await nearest("203.0.113.200/32") == (one, 25)
    assert texts(await ask(server, "films.example", "A")) == all_
    # This also holds for a reader that has not read for longer than expired rows are retained.
    for now in (9000.0, 9000.0 + 2 * EXPIRED_RETENTION):
        store.expire(now, 1000.0)
    clock[0] = EXPIRED_RETENTION + 1
    await mapped.step(server.zone.regions)
    assert await nearest("203.0.113.7/32") == (all_, 0)
    store.close()


@pytest.mark.parametrize("name", ["bad", "worse", "strange", "long", "number", "forever"])
async def test_invalid_record_gives_servfail(server: Server, name: str) -> None:
    assert (await ask(server, f"{name}.example", "A")).rcode() == dns.rcode.SERVFAIL
    assert counted(server, "udp", "bad_record") == 1


async def test_unavailable_store_gives_servfail() -> None:
    zone = Zone(SETTINGS, find)
    answer = await zone.answer(dns.message.make_query("down.example", "A").to_wire(), ip_network("192.0.2.1"), udp=True)
    assert answer.message is not None
    assert dns.message.from_wire(answer.message).rcode() == dns.rcode.SERVFAIL


async def test_many_queries_on_one_connection(server: Server) -> None:
    reader, writer = await asyncio.open_connection(*server.address)
    for number in range(20):
        query = dns.message.make_query("one.example", "AAAA", id=number).to_wire()
        writer.write(struct.pack("!H", len(query)) + query)
    for number in range(20):
        (length,) = struct.unpack("!H", await reader.readexactly(2))
        assert dns.message.from_wire(await reader.readexactly(length)).id == number
    writer.close()
    assert counted(server, "tcp", "noerror") == 20


async def test_malformed_queries_are_counted_and_server_continues(server: Server) -> None:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=server.address)
    for data in (b"x", b"\0" * 11, b"\xff" * 40, b"\0\0\0\0\0\1" + b"\0" * 6 + b"\xc0\x0c\0\1\0\1"):
        transport.sendto(data)
    _, writer = await asyncio.open_connection(*server.address)
    writer.write(b"\0\5hello")
    wanted = {("udp", "malformed"): 1, ("udp", "short"): 2, ("tcp", "short"): 1, ("udp", "response"): 1}
    async with asyncio.timeout(60):
        while any(counted(server, *what) < number for what, number in wanted.items()):
            await asyncio.sleep(0.01)
    assert len(texts(await ask(server, "one.example", "AAAA"))) == 1
    transport.close()
    writer.close()


@given(st.binary(max_size=80), st.booleans())
def test_random_bytes_are_answered_or_dropped(data: bytes, whole: bool) -> None:
    head = b"" if whole else struct.pack("!6H", 7, 0, 1, 0, 0, 1)
    _check(head + data)


@given(st.integers(0, 2**32))
@example(249042)  # an update's opcode
def test_corrupted_queries_are_answered_or_dropped(seed: int) -> None:
    draw = random.Random(seed)
    options = [dns.edns.ECSOption("198.51.100.0", 24)]
    query = bytearray(dns.message.make_query("films.example", "A", use_edns=0, options=options).to_wire())
    for _ in range(draw.randint(1, 4)):
        query[draw.randrange(len(query))] = draw.randrange(256)
    _check(bytes(query[: draw.randint(0, len(query))] if draw.random() < 0.2 else query))


def _check(query: bytes) -> None:
    answer = asyncio.run(Zone(SETTINGS, find).answer(query, ip_network("192.0.2.1"), udp=True))
    if answer.message is None:
        assert len(query) < HEADER or query[2] & 0x80
    else:
        assert answer.message[:2] == query[:2]
        assert answer.message[2] & 0x80
        dns.message.from_wire(answer.message)


@pytest.mark.parametrize(
    "data", ["", "0001", "00011800c633", "0001200000", "00031800c63364", "00012108c6336407", "00011801c63364", "00011700c63365"]
)
def test_invalid_subnets_are_rejected(data: str) -> None:
    with pytest.raises(SubnetError):
        Subnet.read(bytes.fromhex(data))
