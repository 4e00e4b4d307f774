# SPDX-License-Identifier: Apache-2.0
"""Configuration files: valid files, and the errors of invalid ones."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import texts
from conftest import EXAMPLE
from frontage.config import ConfigError, load, loads
from frontage.config.links import Resolved
from frontage.config.network import Neighbor
from frontage.config.vips import Policy
from frontage.fields import Mac
from frontage.limits import MAX_SERVERS
from scale import large_config

TEXT = EXAMPLE.read_text(encoding="utf-8")
FILE = Path("demo.yaml")


edited = partial(texts.replaced, TEXT)
problems = partial(texts.problems, file=FILE)


def test_example_is_valid() -> None:
    config = load(EXAMPLE)
    assert [vip.name for vip in config.vips] == ["shop", "shop6"]
    assert config.vips[0].policy is Policy.CCLB4
    assert config.servers[2].weight == 2
    assert not config.servers[3].active
    assert str(config.ports[0].mac) == "02:00:00:00:01:01"
    assert config.device.pipeline.p4info.is_absolute()
    assert "000102" not in repr(config)


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        (edited("sid: 3", "sid: 5000"), "65:10: servers[2].sid", '"5000" is above the maximum of 4095: give the server id'),
        (edited("sid: 3", "sid: 2"), "65:10: servers[2].sid", "duplicate sid 2: use a free one"),
        (edited("sid: 3", "sid: three"), "65:10: servers[2].sid", 'invalid integer "three": give'),
        (edited("weight: 2", "wieght: 2"), "66:5: servers[2].wieght", 'unknown key "wieght": remove it or use one of: name, vip'),
        (edited("  cpu_port: 510 ", "  "), "5:3: device.cpu_port", "missing: add the number of the switch's CPU port"),
        (
            edited("role: client", "role: inside"),
            "16:11: ports[0].role",
            "unknown role \"inside\": use 'client' (to the clients)",
        ),
        (edited("vip: shop6", "vip: shop7"), "74:10: servers[4].vip", 'unknown VIP "shop7": use one of `vips`: shop, shop6'),
        (
            edited("vip: shop6", "vip: shop"),
            "75:14: servers[4].address",
            "2001:db8:2::b is IPv6, but VIP shop (203.0.113.10) is IPv4: use an IPv4 address",
        ),
        (
            edited("10.0.0.14\n", "10.0.0.13\n"),
            "69:14: servers[3].address",
            "duplicate server address 10.0.0.13 port 8080: give each",
        ),
        (
            edited("10.0.0.14\n", "10.9.0.14\n"),
            "69:14: servers[3].address",
            "no route to 10.9.0.14: add the address to `neighbors`",
        ),
        (
            edited("policy: cclb4 ", "policy: fastest "),
            "42:13: vips[0].policy",
            'unknown policy "fastest": use one of hash, cheetah-rr',
        ),
        (edited("alpha: 0.5", "alpha: 1.5"), "43:12: vips[0].alpha", '"1.5" is above the maximum of 1'),
        (
            edited("203.0.113.10", "203.0.113"),
            "40:14: vips[0].address",
            'invalid IP address "203.0.113": give the address',
        ),
        (
            edited("198.51.100.0/24", "198.51.100.1/24"),
            "27:13: routes[0].prefix",
            'invalid prefix "198.51.100.1/24": host bits are set: give an IP prefix',
        ),
        (
            edited("next_hop: 192.0.2.254", "mac: 02:00:00:00:02"),
            "29:10: routes[0].mac",
            'invalid Ethernet address "02:00:00:00:02": give the next hop',
        ),
        (
            edited("next_hop: 192.0.2.254", "mac: 03:00:00:00:02:fe"),
            "29:10: routes[0].mac",
            'invalid Ethernet address "03:00:00:00:02:fe": not unicast',
        ),
        (
            edited("port: uplink\n", "port: upLink\n"),
            "28:11: routes[0].port",
            'unknown port "upLink": use one of `ports`: rack, uplink',
        ),
        (
            edited("next_hop: 192.0.2.254", "next_hop: 192.0.3.254"),
            "29:15: routes[0].next_hop",
            "192.0.3.254 is not on a link of port uplink, which has 192.0.2.0/24, 2001:db8:1::/64: use an address there, add a gateway",
        ),
        (
            edited("next_hop: 192.0.2.254", "next_hop: 192.0.2.1"),
            "29:15: routes[0].next_hop",
            "192.0.2.1 is an address of the switch itself: use the address of the other host",
        ),
        (
            edited("next_hop: 192.0.2.254", 'next_hop: 192.0.2.254\n    mac: "02:00:00:00:02:fe"'),
            "27:5: routes[0]",
            "needs either next_hop or mac",
        ),
        (edited("    next_hop: 192.0.2.254\n", ""), "27:5: routes[0]", "needs either next_hop or mac"),
        (
            edited("{ address: 192.0.2.11, port: uplink }", "{ address: 192.0.3.11, port: uplink }"),
            "36:16: neighbors[0].address",
            "192.0.3.11 is not on a link of port uplink",
        ),
        (
            edited("{ address: 192.0.2.11, port: uplink }", "{ address: 10.0.0.1, port: rack }"),
            "36:16: neighbors[0].address",
            "10.0.0.1 is an address of the switch itself",
        ),
        (
            edited("gateways: [10.0.0.1/24", "gateways: [192.0.2.2/24, 10.0.0.1/24").replace(
                "2.11, port: uplink", "2.254, port: rack"
            ),
            "29:15: routes[0].next_hop",
            "192.0.2.254 is also behind port rack: use one port for the address",
        ),
        (edited("  - id: 2\n", "  - id: 510\n"), "19:9: ports[1].id", "port 510 is the CPU port"),
        (edited("  - id: 2\n", "  - id: 1\n"), "19:9: ports[1].id", "duplicate port id 1"),
        (edited("secret: 0001", "secret: 00zz"), "82:13: keys[0].secret", "invalid secret: not hexadecimal: give 16 to 32 bytes"),
        (edited("idle_timeout: 120", "idle_timeout: 0"), "88:17: fallback.idle_timeout", '"0" is below the minimum of 1'),
        (edited("name: web1-v6", "name: web1"), "73:11: servers[4].name", 'duplicate server name "web1"'),
        (
            edited("[192.0.2.1/24,", "[192.0.2.1/33,"),
            "18:16: ports[0].gateways[0]",
            'invalid interface address "192.0.2.1/33": give the',
        ),
    ],
)
def test_error_has_position_field_problem_and_fix(text: str, where: str, says: str) -> None:
    found = problems(text)
    assert len(found) == 1, found
    assert found[0].startswith(f"demo.yaml:{where}: "), found
    assert says in found[0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            edited("    sid: 3\n", '    sid: 3\n    tunnel: "10.0.0.13"\n'),
            'demo.yaml:66:5: servers[2].tunnel: unknown key "tunnel": renamed to "tunnel_address"',
        ),
        (
            edited("    policy: cclb4 ", "    artemis: { name: shop.example, id: 3, decided: true }\n    policy: cclb4 "),
            'demo.yaml:42:43: vips[0].artemis.decided: unknown key "decided": renamed to "dedicated_address"',
        ),
    ],
)
def test_renamed_key_is_rejected_with_its_new_name(text: str, problem: str) -> None:
    assert problems(text) == [problem]


def test_error_lists_all_problems() -> None:
    assert len(problems(edited("sid: 3", "sid: 2").replace("vip: shop6", "vip: none").replace("10.0.0.14\n", "10.0.0.13\n"))) == 3


def test_key_ids_must_be_consecutive() -> None:
    two = TEXT.replace("metrics:", "  - id: 3\n    secret: 00112233445566778899aabbccddeeff\n\nmetrics:")
    assert "key ids 1 and 3 are not consecutive: use 1 or 2" in problems(two)[0]
    config = loads(two.replace("- id: 3\n", "- id: 2\n"), FILE)
    assert [key.id for key in config.cookie_keys] == [1, 2]


def test_secret_is_not_in_the_error() -> None:
    assert "deadbeef" not in problems(edited("secret: 0001", "secret: deadbeefzz"))[0]


def test_secret_is_read_from_file(tmp_path: Path) -> None:
    text = "\n".join(line for line in TEXT.splitlines() if "secret: " not in line)
    text = text.replace("  - id: 1\n\nmetrics", "  - id: 1\n    secret_file: key.hex\n\nmetrics")
    with pytest.raises(ConfigError, match=r"keys\[0\].secret_file: cannot be read"):
        loads(text, tmp_path / "demo.yaml")
    (tmp_path / "key.hex").write_text("00" * 15 + "\n")
    with pytest.raises(ConfigError, match=r"invalid secret: 15 bytes long: write 16 to 32 bytes"):
        loads(text, tmp_path / "demo.yaml")
    (tmp_path / "key.hex").write_text("00" * 16 + "\n")
    assert loads(text, tmp_path / "demo.yaml").cookie_keys[0].secret == bytes(16)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "demo.yaml:1:1: empty file"),
        ("- 1", "demo.yaml:1:1: not a mapping"),
        ("a: [", "demo.yaml:2:1: did not find expected node content"),
        ("device: 1\ndevice: 2", 'demo.yaml:2:1: device: duplicate key "device", first used in line 1'),
        ("a: &a [*a]", 'demo.yaml:1:8: a[0]: unknown anchor "a"'),
        ("---\na: 1\n---\nb: 2", "demo.yaml:3:1: unexpected second document"),
        ("[a]: 1", "demo.yaml:1:1: a key must be plain text"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ("- " * 100_000, "nested too deeply"),
        ("\0", "control characters are not allowed"),
    ],
)
def test_invalid_text_is_rejected_with_position(text: str, says: str) -> None:
    assert says in problems(text)[0]


def test_missing_and_unreadable_files_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x80")
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "binary.yaml")


def test_configuration_above_the_sizes_of_the_program_is_rejected() -> None:
    text = large_config(MAX_SERVERS + 1, 4).replace("sid: 4096", "sid: 4095")
    assert any(f"servers: {MAX_SERVERS + 1} servers, but the P4 program has room for {MAX_SERVERS}" in p for p in problems(text))
    assert any("513 VIPs, but the P4 program has room for 512" in p for p in problems(large_config(513, 513)))


def test_too_many_score_classes_are_rejected() -> None:
    lines = []
    for line in large_config(100, 1).splitlines():
        sid = line.rpartition("sid: ")[2].rstrip("}") if "sid: " in line else None
        lines.append(line if sid is None else line.replace("}", f", weight: {int(sid) + 1}}}"))
    assert "100 pairs of alpha and relative weight" in problems("\n".join(lines))[0]


@settings(max_examples=100)
@given(st.data())
def test_mutated_file_loads_or_is_rejected(data: st.DataObject) -> None:
    text = TEXT
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        stop = data.draw(st.integers(start, min(len(text), start + 40)))
        text = text[:start] + data.draw(st.text(max_size=10)) + text[stop:]
    try:
        config = loads(text, FILE)
    except ConfigError as error:
        found = str(error)
    else:
        found = f"{FILE} {config.device.address}"
    assert str(FILE) in found


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ("servers: []", "store.nats.servers: "),
        ('servers: ["http://10.0.0.1:4222"]', 'store.nats.servers[0]: invalid value "http://10.0.0.1:4222"'),
        ('servers: ["nats://a:1", "nats://a:1"]', 'store.nats.servers[1]: duplicate server "nats://a:1": remove one of them'),
        ('servers: ["nats://a:1"], replicas: 2', "store.nats.replicas: 2 replicas: use 1, 3 or 5"),
        ('servers: ["nats://a:1"], lease: 1', 'store.nats.lease: "1" is below the minimum of 2'),
        ('servers: ["nats://a:1"], bucket: "a b"', 'store.nats.bucket: invalid value "a b"'),
        ('servers: ["nats://a:1"], tls: { key: k.pem }', "store.nats.tls: a certificate without its key, or a key without"),
        ('servers: ["nats://a:1"], credentials: c', "store.nats.servers[0]: without `tls`, credentials would cross the network"),
    ],
)
def test_store_is_checked(settings: str, problem: str) -> None:
    (found,) = problems(f"{TEXT}\nstore: {{ nats: {{ {settings} }} }}\n")
    assert problem in found


def test_store_accepts_credentials_on_loopback_addresses() -> None:
    config = loads(f'{TEXT}\nstore: {{ nats: {{ servers: ["nats://127.0.0.1:4222"], credentials: c }} }}\n', FILE)
    assert config.store is not None
    assert config.store.nats.credentials == Path("c").absolute()


def test_mac_is_printed_as_hexadecimal_pairs() -> None:
    assert str(Mac(0x0200000000FE)) == "02:00:00:00:00:fe"


def test_configuration_loads_without_optional_libraries() -> None:
    """Only the features that a file uses import their libraries."""
    blocked = ("aiohttp", "dnslib", "frontage_records", "nats", "numpy", "psycopg", "sqlalchemy")
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({blocked!r}))\n"
        f"import frontage.cli, frontage.service.daemon; from frontage.config import load; load({str(EXAMPLE)!r})"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_hosts_without_mac_are_wanted() -> None:
    wanted = loads(TEXT, FILE).wanted
    links = {str(address): [(link.port.name, str(link.gateway)) for link in host.links] for address, host in wanted.items()}
    servers = {f"10.0.0.{n}": [("rack", "10.0.0.1")] for n in (11, 12, 13, 14)} | {"2001:db8:2::b": [("rack", "2001:db8:2::1")]}
    hops = {"192.0.2.254": [("uplink", "192.0.2.1")], "2001:db8:1::fe": [("uplink", "2001:db8:1::1")]}
    assert links == servers | hops | {"192.0.2.11": [("uplink", "192.0.2.1")]}


def test_static_neighbors_are_not_wanted() -> None:
    static = '{ address: 192.0.2.11, port: uplink }\n  - { address: 10.0.0.11, port: rack, mac: "02:00:00:00:03:0b" }\n'
    static += '  - { address: 192.0.2.254, port: uplink, mac: "02:00:00:00:02:fe" }'
    config = loads(edited("{ address: 192.0.2.11, port: uplink }", static), FILE)
    assert not {ip_address("10.0.0.11"), ip_address("192.0.2.254")} & config.wanted.keys()
    completed = config.complete({})
    assert (completed.routes[0].mac, completed.routes[0].next_hop) == (Mac(0x0200000002FE), None)
    assert completed.routes[1].mac is None


def test_next_hop_is_a_host_of_its_own() -> None:
    hosts = {str(host.address): host.port for host in loads(TEXT, FILE).on_link_hosts}
    assert hosts["192.0.2.254"] == hosts["2001:db8:1::fe"] == "uplink"


def test_servers_behind_a_longer_route_are_not_wanted() -> None:
    text = edited("routes:\n", "routes:\n  - prefix: 10.0.0.12/31\n    port: rack\n    next_hop: 10.0.0.11\n")
    assert [str(a) for a in loads(text, FILE).wanted if str(a).startswith("10.")] == ["10.0.0.11", "10.0.0.14"]


def test_host_on_the_link_of_two_ports_is_wanted_on_both() -> None:
    config = loads(edited("gateways: [192.0.2.1/24", "gateways: [10.0.0.2/24, 192.0.2.1/24"), FILE)
    assert [link.port.name for link in config.wanted[ip_address("10.0.0.11")].links] == ["uplink", "rack"]
    found = {ip_address("10.0.0.11"): Resolved("rack", Mac(5))}
    assert Neighbor(address=ip_address("10.0.0.11"), port="rack", mac=Mac(5)) in config.complete(found).on_link_hosts


def test_complete_configuration_has_no_wanted_hosts() -> None:
    config = loads(TEXT, FILE)
    macs = {
        address: Resolved(host.links[0].port.name, Mac(0x020000000000 + n))
        for n, (address, host) in enumerate(config.wanted.items())
    }
    completed = config.complete(macs)
    assert completed.wanted == {}
    assert {str(host.address): host.mac for host in completed.on_link_hosts} == {str(a): found.mac for a, found in macs.items()}
    assert completed.complete({}) == completed
    assert config.complete({}) == config
