# SPDX-License-Identifier: Apache-2.0
"""Discovery of servers: formats, SIDs, sources that fail, and a running controller that follows a source."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

import dns.exception
import dns.message
import dns.query
import dns.resolver
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import EXAMPLE
from frontage.config import ConfigError, load, loads
from frontage.config.discovery import DnsSource, FileSource, HttpSource, KubernetesSource, Record, Source
from frontage.config.vips import Server
from frontage.discovery import sources
from frontage.discovery.roster import Roster
from frontage.discovery.service import Discovery, state_file, with_discovered
from frontage.discovery.sources import query
from frontage.discovery.targets import MAX_TARGETS, SourceError, Target, from_endpoint_slices, from_prometheus
from frontage.p4.entries import Key
from frontage.service.daemon import Service
from frontage.state.allocation import Installed, allocate
from frontage.state.desired import desired
from live import LIMIT, installed, only, serving, until
from test_tracing import free_port

THREADS = ThreadPoolExecutor(4)


def targets(*texts: str) -> frozenset[Target]:
    return from_prometheus([{"targets": list(texts)}], 4)


def file_source(path: Path = Path("targets.json"), first: int = 100, last: int = 109, **fields: float) -> FileSource:
    return FileSource(kind="file", path=path, sids=(first, last), **fields)  # type: ignore[arg-type]


# Formats


def test_prometheus_groups_have_targets_of_both_ip_versions_and_weights() -> None:
    data = [{"targets": ["10.0.0.1:80", "[2001:db8::1]:81"], "labels": {"weight": "3", "rack": "a"}}, {"targets": ["10.0.0.2:80"]}]
    assert from_prometheus(data, 4) == {Target(ip_address("10.0.0.1"), 80, 3), Target(ip_address("10.0.0.2"), 80)}
    assert from_prometheus(data, 6) == {Target(ip_address("2001:db8::1"), 81, 3)}


def test_zones_come_from_labels_and_endpoint_slices_and_survive_a_restart() -> None:
    data = [{"targets": ["10.0.0.1:80"], "labels": {"zone": "hall1"}}, {"targets": ["10.0.0.2:80"]}]
    zones = {str(target.address): target.zone for target in from_prometheus(data, 4)}
    assert zones == {"10.0.0.1": "hall1", "10.0.0.2": None}
    item = slice_of("10.0.0.3")
    item["endpoints"] = [{**endpoint, "zone": "hall2"} for endpoint in item["endpoints"]]  # type: ignore[attr-defined]
    found = from_endpoint_slices({"items": [item]}, None, 4)
    assert {target.zone for target in found} == {"hall2"}
    roster = Roster()
    roster.update(found, file_source(), 0)
    assert [server.zone for server in Roster.from_json(roster.to_json()).servers("shop")] == ["hall2"]
    old = [{name: value for name, value in one.items() if name != "zone"} for one in roster.to_json()]
    assert [server.zone for server in Roster.from_json(old).servers("shop")] == [None]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({}, "not a list of groups"),
        ([[]], 'a group without a list "targets"'),
        ([{"targets": "10.0.0.1:80"}], 'a group without a list "targets"'),
        ([{"targets": ["10.0.0.1"]}], "invalid target '10.0.0.1': use ADDRESS:PORT"),
        ([{"targets": [{}]}], "invalid target {}"),
        ([{"targets": ["web:80"]}], "invalid target 'web' port '80': use an IP address and a number"),
        ([{"targets": ["10.0.0.1:0"]}], "a switch cannot send there"),
        ([{"targets": ["127.0.0.1:80"]}], "a switch cannot send there"),
        ([{"targets": ["10.0.0.1:80"], "labels": {"weight": "0"}}], "invalid weight '0'"),
        ([{"targets": ["10.0.0.1:80"], "labels": []}], None),
        ([{"targets": ["10.0.0.1:80"], "labels": "x"}], "labels that are not a mapping"),
        ([{"targets": ["10.0.0.1:80"], "labels": {"zone": "hall 1"}}], "invalid zone 'hall 1': use letters, digits"),
        ([{"targets": [f"10.{i >> 8}.{i & 255}.1:80" for i in range(MAX_TARGETS + 1)]}], "more than 4096 servers"),
    ],
)
def test_invalid_groups_are_rejected(data: object, problem: str | None) -> None:
    if problem is None:
        assert from_prometheus(data, 4)
        return
    with pytest.raises(SourceError, match=re.escape(problem)):
        from_prometheus(data, 4)


NAMES = ["targets", "labels", "weight", "zone", "items", "endpoints", "addresses", "conditions", "ready", "ports", "port", "name"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from([*NAMES, "10.0.0.1:80", "10.0.0.1"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(NAMES) | st.text(), inner),
    max_leaves=8,
)
ITEM = st.fixed_dictionaries({"addressType": st.just("IPv4"), "endpoints": JSON, "ports": JSON})


@given(JSON, st.lists(ITEM))
def test_any_json_is_accepted_or_rejected(data: object, items: list[object]) -> None:
    with suppress(SourceError):
        from_prometheus(data, 4)
    for slices in (data, {"items": data}, {"items": items}):
        for name in (None, "http"):
            with suppress(SourceError):
                from_endpoint_slices(slices, name, 4)


def slice_of(*addresses: str, ready: bool | None = True, ports: object = ({"name": "http", "port": 8080},)) -> dict[str, object]:
    endpoints = [{"addresses": [address], "conditions": {"ready": ready} if ready is not None else {}} for address in addresses]
    return {"addressType": "IPv4", "endpoints": endpoints, "ports": list(ports)}  # type: ignore[call-overload]


def test_endpoint_slices_have_ready_endpoints() -> None:
    data = {
        "items": [
            slice_of("10.0.0.1"),
            slice_of("10.0.0.2", ready=None),
            slice_of("10.0.0.3", ready=False),
            {"addressType": "FQDN"},
        ]
    }
    assert from_endpoint_slices(data, None, 4) == targets("10.0.0.1:8080", "10.0.0.2:8080")
    assert from_endpoint_slices(data, "http", 4) == targets("10.0.0.1:8080", "10.0.0.2:8080")
    assert from_endpoint_slices(data, None, 6) == frozenset()
    with pytest.raises(SourceError, match='no port "metrics"'):
        from_endpoint_slices(data, "metrics", 4)
    two = {"items": [slice_of("10.0.0.1", ports=[{"name": "a", "port": 1}, {"name": "b", "port": 2}])]}
    with pytest.raises(SourceError, match="several ports: choose one of a, b"):
        from_endpoint_slices(two, None, 4)
    assert from_endpoint_slices(two, "b", 4) == targets("10.0.0.1:2")


# SIDs


def test_server_keeps_its_sid_while_it_is_named_and_while_it_drains() -> None:
    source, roster = file_source(drain=60), Roster()
    roster.update(targets("10.0.0.1:80", "10.0.0.2:80"), source, 0)
    sids = {str(server.address): server.sid for server in roster.servers("shop")}
    assert all(100 <= sid <= 109 for sid in sids.values())
    roster.update(targets("10.0.0.2:80", "10.0.0.3:80"), source, 10)
    by_address = {str(server.address): server for server in roster.servers("shop")}
    assert by_address["10.0.0.1"].sid == sids["10.0.0.1"]
    assert not by_address["10.0.0.1"].active
    assert by_address["10.0.0.2"].sid == sids["10.0.0.2"]
    roster.expire(source, 69)
    assert len(roster.servers("shop")) == 3
    roster.update(targets("10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"), source, 69)
    assert {s.sid: s.active for s in roster.servers("shop")}[sids["10.0.0.1"]], "it is back"
    roster.update(targets("10.0.0.2:80"), source, 100)
    roster.expire(source, 160)
    assert [str(s.address) for s in roster.servers("shop")] == ["10.0.0.2"]


def test_controllers_with_the_same_result_agree_on_sids() -> None:
    one, two = Roster(), Roster()
    found = targets(*(f"10.0.0.{i}:80" for i in range(1, 8)))
    one.update(found, file_source(), 0)
    two.update(found, file_source(), 5)
    assert one.servers("shop") == two.servers("shop")
    assert Roster.from_json(json.loads(json.dumps(one.to_json()))).entries == one.entries


def test_full_range_ends_the_oldest_drain() -> None:
    source, roster = file_source(first=100, last=101), Roster()
    roster.update(targets("10.0.0.1:80", "10.0.0.2:80"), source, 0)
    roster.update(targets("10.0.0.2:80"), source, 1)
    roster.update(targets("10.0.0.3:80"), source, 2)
    assert {str(s.address): s.active for s in roster.servers("shop")} == {"10.0.0.2": False, "10.0.0.3": True}


@pytest.mark.parametrize(
    ("found", "problem"), [((), "0 servers are less than min_servers, 1"), (range(1, 12), "11 servers, but `sids` has room for 10")]
)
def test_implausible_results_change_nothing(found: tuple[int, ...], problem: str) -> None:
    roster = Roster()
    roster.update(targets("10.0.0.1:80"), file_source(), 0)
    before = dict(roster.entries)
    with pytest.raises(SourceError, match=re.escape(problem)):
        roster.update(targets(*(f"10.0.1.{i}:80" for i in found)), file_source(), 1)
    assert roster.entries == before


@given(st.lists(st.sets(st.integers(1, 12), min_size=1, max_size=6), max_size=12))
def test_sids_are_unique_and_stay(results: list[set[int]]) -> None:
    source, roster = file_source(first=100, last=107, drain=2), Roster()
    for now, found in enumerate(results):
        before = {(s.address, s.port): s.sid for s in roster.servers("shop")}
        roster.update(targets(*(f"10.0.0.{i}:80" for i in found)), source, now)
        roster.expire(source, now)
        servers = roster.servers("shop")
        assert len({s.sid for s in servers}) == len(servers) <= 8
        assert {int(s.address) & 255 for s in servers if s.active} == found
        assert all(before.get((s.address, s.port), s.sid) == s.sid for s in servers)


def test_servers_of_the_file_come_first() -> None:
    config = loads(with_source("{ kind: file, path: targets.json, sids: [100, 109] }"), EXAMPLE)
    roster = Roster()
    # The first target is a server of the file.
    roster.update(targets("10.0.0.11:8080", "10.0.0.21:8080"), file_source(), 0)
    found = with_discovered(config, {"shop": roster, "unknown": roster})
    assert [str(s.address) for s in found.servers[len(config.servers) :]] == ["10.0.0.21"]
    assert with_discovered(config, {}) is config


# Sources


class Endpoint:
    """A real HTTP server with a response that tests change."""

    def __init__(self) -> None:
        self.body = b"[]"
        self.status = 200
        self.headers: dict[str, str] = {}
        self.delay = 0.0
        self.asked: list[tuple[str, str | None]] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                endpoint.asked.append((self.path, self.headers.get("Authorization")))
                self.send_response(endpoint.status)
                self.end_headers()
                try:
                    for byte in range(0, len(endpoint.body), 65536 if not endpoint.delay else 1):
                        self.wfile.write(endpoint.body[byte : byte + (65536 if not endpoint.delay else 1)])
                        time.sleep(endpoint.delay)
                except OSError:
                    pass  # the client gave up

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    found = Endpoint()
    yield found
    found.server.shutdown()
    found.server.server_close()


def http_source(endpoint: Endpoint, **fields: object) -> HttpSource:
    return HttpSource(kind="http", url=f"{endpoint.url}/targets", sids=(100, 109), **fields)  # type: ignore[arg-type]


async def problem_of(source: Source) -> str:
    with pytest.raises(SourceError) as caught:
        await query(source, 4, THREADS)
    return str(caught.value)


async def test_http_endpoint_is_queried_with_its_token(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.body = b'[{"targets": ["10.0.0.1:80"]}]'
    token = tmp_path / "token"
    token.write_text("secret\n")
    assert await query(http_source(endpoint, token_file=token), 4, THREADS) == targets("10.0.0.1:80")
    assert endpoint.asked == [("/targets", "Bearer secret")]


async def test_unusable_http_results_are_rejected(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    source = http_source(endpoint)
    endpoint.body = b"<html>"
    assert "not JSON" in await problem_of(source)
    endpoint.body = b"[" * 200_000
    assert "not JSON" in await problem_of(source)
    endpoint.body = json.dumps([{"targets": [f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}:80" for i in range(100_000)]}]).encode()
    assert "more than 4096 servers" in await problem_of(source)
    endpoint.body = b" " * (sources.MAX_BYTES + 1)
    assert f"more than {sources.MAX_BYTES} bytes" in await problem_of(source)
    endpoint.status = 503
    assert "status 503" in await problem_of(source)
    endpoint.status, endpoint.body, endpoint.delay = 200, b"[" * 1000, 0.05
    monkeypatch.setattr(sources, "TIMEOUT", 0.2)
    assert "incomplete after 0.2 s" in await problem_of(source)
    nowhere = source.model_copy(update={"url": "http://127.0.0.1:1/"})
    assert "refused" in await problem_of(nowhere)


async def test_kubernetes_is_asked_for_the_slices_of_the_service(endpoint: Endpoint) -> None:
    endpoint.body = json.dumps({"items": [slice_of("10.0.0.1")]}).encode()
    source = KubernetesSource(kind="kubernetes", url=endpoint.url + "/", namespace="prod", service="web", sids=(100, 109))
    assert await query(source, 4, THREADS) == targets("10.0.0.1:8080")
    path = "/apis/discovery.k8s.io/v1/namespaces/prod/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dweb"
    assert endpoint.asked == [(path, None)]


async def test_file_may_be_json_or_yaml(tmp_path: Path) -> None:
    file = tmp_path / "targets"
    for text in ('[{"targets": ["10.0.0.1:80"]}]', "- targets:\n  - 10.0.0.1:80\n"):
        file.write_text(text)
        assert await query(file_source(file), 4, THREADS) == targets("10.0.0.1:80")
    file.write_text("- : [")
    assert "neither JSON nor YAML" in await problem_of(file_source(file))
    file.write_bytes(b"\xff\xfe\x00")
    assert await problem_of(file_source(file))
    assert "cannot be read" in await problem_of(file_source(tmp_path / "none"))


ZONE = """\
$ORIGIN example.
$TTL 5
@ SOA ns hostmaster 1 3600 900 86400 5
@ NS ns
ns A 127.0.0.1
web A 10.0.0.1
web A 10.0.0.2
web AAAA 2001:db8::1
_web._tcp SRV 10 5 8081 one
_web._tcp SRV 10 5 8082 two
_web._tcp SRV 20 5 8083 three
one A 10.0.0.11
two A 10.0.0.12
three A 10.0.0.13
"""


@contextmanager
def name_server(folder: Path) -> Iterator[int]:
    """Run NSD, an authoritative server, with the zone. Yield its port, where it answers."""
    program = shutil.which("nsd") or "/usr/sbin/nsd"
    if not Path(program).exists():
        pytest.skip("needs nsd: install the package nsd")
    (folder / "zone").write_text(ZONE)
    config, log = folder / "nsd.conf", folder / "nsd.log"

    def starts(port: int) -> subprocess.Popen[bytes] | None:
        """Start NSD on a port. Return None if it exits, for example because another program uses the port."""
        config.write_text(
            f'server:\n  ip-address: 127.0.0.1@{port}\n  username: ""\n  chroot: ""\n  zonesdir: "{folder}"\n  database: ""\n'
            f'  pidfile: "{folder}/pid"\n  xfrdfile: "{folder}/xfrd"\n  zonelistfile: "{folder}/list"\n  xfrdir: "{folder}"\n'
            f'remote-control:\n  control-enable: no\nzone:\n  name: example\n  zonefile: "zone"\n'
        )
        with log.open("ab") as output:
            process = subprocess.Popen([program, "-d", "-c", config], stdout=output, stderr=output)
        while process.poll() is None:
            if answers(port):
                return process
        return None

    for port in [free_port() for _ in range(5)]:
        if process := starts(port):
            break
    else:
        raise AssertionError(f"NSD does not start: {log.read_text()}")
    try:
        yield port
    finally:
        process.terminate()
        process.wait()


def answers(port: int) -> bool:
    """Return whether a name server on the port knows the zone."""
    query = dns.message.make_query("ns.example", "A")
    try:
        return bool(dns.query.udp(query, "127.0.0.1", port=port, timeout=1).answer)
    except dns.exception.Timeout:
        return False


async def test_dns_records_are_resolved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with name_server(folder) as port:
        monkeypatch.setattr(dns.resolver.Resolver, "port", property(lambda _: port, lambda *_: None), raising=False)

        def source(name: str, record: Record, number: int | None = None) -> DnsSource:
            return DnsSource(kind="dns", name=name, record=record, port=number, resolver=ip_address("127.0.0.1"), sids=(100, 109))

        assert await query(source("web.example", Record.A, 80), 4, THREADS) == targets("10.0.0.1:80", "10.0.0.2:80")
        assert await query(source("web.example", Record.AAAA, 80), 6, THREADS) == {Target(ip_address("2001:db8::1"), 80)}
        assert await query(source("_web._tcp.example", Record.SRV), 4, THREADS) == targets("10.0.0.11:8081", "10.0.0.12:8082")
        assert "does not exist" in await problem_of(source("none.example", Record.A, 80))


# The configuration file


def with_source(source: str, vip: str = "shop") -> str:
    return EXAMPLE.read_text(encoding="utf-8").replace(f"  - name: {vip}\n", f"  - name: {vip}\n    discovery: {source}\n", 1)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("{ kind: file, path: x, sids: [9, 5] }", "vips[0].discovery.sids: the first SID 9 is above the last one 5"),
        ("{ kind: file, path: x, sids: [3, 5] }", "vips[0].discovery.sids: SID 3 belongs to the server web3"),
        ("{ kind: file, path: x, sids: [100, 101], min_servers: 3 }", "vips[0].discovery.min_servers: `sids` has room for 2"),
        ("{ kind: dns, name: web.example, record: A, sids: [100, 109] }", "vips[0].discovery.record: A records have no port: add `port`"),
        ("{ kind: dns, name: web.example, record: AAAA, port: 1, sids: [100, 109] }", "discovery.record: the VIP has an IPv4 address"),
        ("{ kind: dns, name: web.example, record: SRV, port: 1, sids: [100, 109] }", "vips[0].discovery.port: SRV records have ports"),
        ("{ kind: http, url: \"ftp://x\", sids: [100, 109] }", 'vips[0].discovery.url: invalid value "ftp://x"'),
        ("{ kind: consul, sids: [100, 109] }", "vips[0].discovery"),
    ],
)  # fmt: skip
def test_invalid_sources_are_rejected(source: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(problem)):
        loads(with_source(source), EXAMPLE)


def test_ranges_of_two_vips_must_not_overlap() -> None:
    text = with_source("{ kind: file, path: x, sids: [100, 109] }")
    text = text.replace("  - name: shop6\n", "  - name: shop6\n    discovery: { kind: file, path: y, sids: [109, 120] }\n")
    with pytest.raises(ConfigError, match=re.escape("vips[1].discovery.sids: the SIDs overlap with those of shop")):
        loads(text, EXAMPLE)


# Remote servers


REMOTE = EXAMPLE.with_name("remote-servers.yaml")


def with_tunnel(tunnel: str) -> str:
    """Return the example with remote servers, and more of them from a file."""
    source = f"{{ kind: file, path: x, sids: [100, 109], encapsulation: {tunnel} }}"
    text = REMOTE.read_text(encoding="utf-8")
    return text.replace("  - { name: shop, address", f"  - {{ name: shop, discovery: {source}, address", 1)


@pytest.mark.parametrize(
    ("tunnel", "problem"),
    [
        ("vlan", 'vips[0].discovery.encapsulation.kind: unknown kind "vlan": use one of none, vxlan'),
        ("{ kind: gre, vni: 7 }", "vips[0].discovery.encapsulation.vni: gre has no VNI: remove it"),
        (
            "{ kind: vxlan, endpoint: 192.0.2.9 }",
            "vips[0].discovery.encapsulation.endpoint: no route to 192.0.2.9 by a port of role",
        ),
        ("{ kind: vxlan, endpoint: 10.8.0.1 }", "vips[0].discovery.encapsulation.endpoint: 10.8.0.1 is this site's vtep"),
    ],
)
def test_invalid_tunnels_of_a_source_are_rejected(tunnel: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(problem)):
        loads(with_tunnel(tunnel), REMOTE)


def test_tunnels_of_a_source_need_a_vtep() -> None:
    with pytest.raises(
        ConfigError, match=re.escape("vips[0].discovery.encapsulation: this switch has no tunnel endpoint: add `site`")
    ):
        loads(with_source("{ kind: file, path: x, sids: [100, 109], encapsulation: vxlan }"), EXAMPLE)


GROUPS = [
    {"targets": ["10.9.0.21:80"]},
    {"targets": ["172.16.0.22:80"], "labels": {"endpoint": "10.9.0.22"}},
    {"targets": ["10.0.0.23:80"], "labels": {"encapsulation": "none"}},
]


def test_discovered_servers_have_the_tunnels_of_source_and_labels() -> None:
    config = loads(with_tunnel("{ kind: vxlan, vni: 9, mtu: 9000 }"), REMOTE)
    source = config.vips[0].discovery
    assert source is not None
    roster = Roster()
    roster.update(from_prometheus(GROUPS, 4), source, 0)
    rosters = {"shop": Roster.from_json(json.loads(json.dumps(roster.to_json())))}
    found = {str(s.address): s for s in with_discovered(config, rosters).servers if s.sid >= 100}
    ends = {address: str(server.destination) if server.remote else None for address, server in found.items()}
    assert ends == {"10.9.0.21": "10.9.0.21", "172.16.0.22": "10.9.0.22", "10.0.0.23": None}
    assert {s.remote.tunnel_id for s in found.values() if s.remote} == {9}
    assert {s.remote.mtu for s in found.values() if s.remote} == {9000}
    state = desired(with_discovered(config, rosters), allocate(with_discovered(config, rosters), Installed({})))
    sid = found["172.16.0.22"].sid
    assert state[Key("server.server4", (sid,))].name == "to_remote_server4"

    # An older controller writes files without tunnels.
    old = [{name: value for name, value in one.items() if name not in ("endpoint", "is_local")} for one in roster.to_json()]
    assert Roster.from_json(old).entries.keys() == roster.entries.keys()


@pytest.mark.parametrize(
    ("group", "problem"),
    [
        ({"targets": ["172.16.0.1:80"], "labels": {"endpoint": "router"}}, "invalid endpoint 'router': use an IP address"),
        ({"targets": ["172.16.0.1:80"], "labels": {"encapsulation": "gre"}}, "invalid encapsulation 'gre': use \"none\""),
        ({"targets": ["172.16.0.1:80"], "labels": {"encapsulation": "none", "endpoint": "10.9.0.1"}}, "remove one of them"),
        ({"targets": ["192.0.2.7:80"]}, "server 192.0.2.7 port 80: no route to 192.0.2.7 by a port of role 'server': add one"),
        ({"targets": ["172.16.0.1:80"], "labels": {"endpoint": "10.8.0.1"}}, "10.8.0.1 is this site's vtep: use another"),
    ],
)
async def test_results_with_unusable_tunnels_are_rejected(tmp_path: Path, group: dict[str, object], problem: str) -> None:
    path = tmp_path / "targets.json"
    config = loads(with_tunnel("vxlan").replace("path: x", f"path: '{path}'"), REMOTE)
    changes = []

    async def changed() -> None:
        changes.append(True)

    discovery = Discovery(tmp_path / "frontage.yaml", changed)
    discovery.follow(config)
    (state,) = discovery._states.values()
    path.write_text(json.dumps(GROUPS))
    await discovery.step("shop", state, time.time())
    known = dict(discovery.rosters["shop"].entries)
    assert len(known) == len(GROUPS)
    path.write_text(json.dumps([*GROUPS, group]))
    await discovery.step("shop", state, time.time())
    assert problem in str(state.error)
    assert discovery.rosters["shop"].entries == known
    # A later change of the file may take a route away.
    nowhere = loads(with_tunnel("vxlan").replace("10.9.0.0/16, port: fabric", "10.9.0.8/29, port: fabric"), REMOTE)
    left = [str(s.address) for s in with_discovered(nowhere, discovery.rosters).servers if s.sid >= 100]
    assert left == ["10.0.0.23"]
    await discovery.close()


def test_endpoints_need_a_source_with_a_tunnel() -> None:
    with pytest.raises(
        SourceError, match=re.escape("the label endpoint 10.9.0.22, but `discovery` has no `encapsulation`: add it")
    ):
        Roster().update(from_prometheus(GROUPS, 4), file_source(), 0)


# A running controller


def discovered(config_servers: tuple[Server, ...]) -> dict[str, bool]:
    return {str(s.address): s.active for s in config_servers if s.sid >= 100}


async def test_controller_follows_the_source(config_file: Path, endpoint: Endpoint) -> None:
    line = f'{{ kind: http, url: "{endpoint.url}/", sids: [100, 109], interval: 0.1, drain: 600 }}'
    config_file.write_text(config_file.read_text().replace("  - name: shop\n", f"  - name: shop\n    discovery: {line}\n", 1))
    endpoint.body = b'[{"targets": ["10.0.0.13:9000", "10.0.0.14:9000"]}]'
    async with asyncio.timeout(LIMIT), serving(Service(config_file)) as service:

        def servers() -> dict[str, bool]:
            return discovered(only(service).config.servers)

        await until(lambda: servers() == {"10.0.0.13": True, "10.0.0.14": True})
        state = await installed(only(service))
        sids = {server.sid for server in only(service).config.servers if server.sid >= 100}
        assert {key.match[1] for key in state if key.table == "choice.member"} >= sids

        # Nothing usable: the servers stay.
        for body in (b"nonsense", b"[]"):
            endpoint.body = body
            asked = len(endpoint.asked)
            await until(lambda asked=asked: len(endpoint.asked) > asked + 2)  # type: ignore[misc]
            assert servers() == {"10.0.0.13": True, "10.0.0.14": True}
        (described,) = service.discovery.describe()
        assert described["error"] == "0 servers are less than min_servers, 1"
        names = {sample.name: sample.value for metric in service.discovery.metrics() for sample in metric.samples}
        assert names["frontage_discovery_failing"] == 1

        endpoint.body = b'[{"targets": ["10.0.0.13:9000"]}]'
        await until(lambda: servers() == {"10.0.0.13": True, "10.0.0.14": False})
        await installed(only(service))

    # The next controller knows the servers before the source responds.
    endpoint.status = 500
    assert state_file(config_file).exists()
    async with asyncio.timeout(LIMIT), serving(Service(config_file)) as service:
        assert discovered(only(service).config.servers) == {"10.0.0.13": True, "10.0.0.14": False}
        await installed(only(service))
        # Without the section, the servers leave.
        config_file.write_text(re.sub(r"    discovery: .*\n", "", config_file.read_text()))
        await until(lambda: not discovered(only(service).config.servers))
        await until(lambda: not service.discovery.describe())
        assert load(config_file).servers == only(service).config.servers


async def test_damaged_state_file_counts_as_empty(tmp_path: Path) -> None:
    file = tmp_path / "frontage.yaml"

    async def changed() -> None:
        pass

    for text in ("{", "[]", '{"shop": [{}]}', '{"shop": [{"address": "x", "port": 1, "sid": 1, "weight": 1, "gone_at": null}]}'):
        state_file(file).write_text(text)
        assert Discovery(file, changed).rosters == {}
