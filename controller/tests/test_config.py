"""Configuration files: what is accepted, and what is said of what is not."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import texts
from conftest import EXAMPLE
from frontage.config import ConfigError, load, loads
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
        (edited("sid: 3", "sid: 5000"), "70:10: servers[2].sid", "'5000' is larger than 4095; give a server id"),
        (edited("sid: 3", "sid: 2"), "70:10: servers[2].sid", "sid 2 is used twice"),
        (edited("sid: 3", "sid: three"), "70:10: servers[2].sid", "'three' is not a whole number"),
        (edited("weight: 2", "wieght: 2"), "71:5: servers[2].wieght", "is no field of the configuration; remove it or use one"),
        (edited("  cpu_port: 510 ", "  "), "5:3: device.cpu_port", "is missing; add the port number"),
        (
            edited("role: client", "role: inside"),
            "16:11: ports[0].role",
            "'inside' is not one of 'client', 'server', 'site'",
        ),
        (edited("vip: shop6", "vip: shop7"), "79:10: servers[4].vip", "there is no VIP shop7; name one of `vips`: shop, shop6"),
        (
            edited("vip: shop6", "vip: shop"),
            "80:14: servers[4].address",
            "2001:db8:2::b is IPv6, but VIP shop (203.0.113.10) is IPv4; give an IPv4 address",
        ),
        (edited("10.0.0.14\n", "10.0.0.13\n"), "74:14: servers[3].address", "two servers have address 10.0.0.13 port 8080"),
        (edited("10.0.0.14\n", "10.9.0.14\n"), "74:14: servers[3].address", "neither a neighbor nor a route leads to 10.9.0.14"),
        (edited("policy: cclb4 ", "policy: fastest "), "47:13: vips[0].policy", "'fastest' is not one of 'hash'"),
        (edited("alpha: 0.5", "alpha: 1.5"), "48:12: vips[0].alpha", "'1.5' is larger than 1"),
        (
            edited("203.0.113.10", "203.0.113"),
            "45:14: vips[0].address",
            "'203.0.113' is not an IPv4 or IPv6 address; give the address",
        ),
        (
            edited("198.51.100.0/24", "198.51.100.1/24"),
            "27:13: routes[0].prefix",
            "not a prefix: it has host bits set; give an IP prefix",
        ),
        (edited("02:00:00:00:02:fe", "02:00:00:00:02"), "29:10: routes[0].mac", "is not an Ethernet address; give the next hop"),
        (edited("02:00:00:00:02:fe", "03:00:00:00:02:fe"), "29:10: routes[0].mac", "is not a unicast Ethernet address"),
        (edited("port: uplink\n", "port: upLink\n"), "28:11: routes[0].port", "there is no port upLink; name one of: rack, uplink"),
        (edited("  - id: 2\n", "  - id: 510\n"), "19:9: ports[1].id", "port 510 is the CPU port"),
        (edited("  - id: 2\n", "  - id: 1\n"), "19:9: ports[1].id", "port id 1 is used twice"),
        (edited("secret: 0001", "secret: 00zz"), "87:13: keys[0].secret", "not hexadecimal; give 16 to 32 bytes"),
        (edited("idle_timeout: 120", "idle_timeout: 0"), "93:17: fallback.idle_timeout", "'0' is smaller than 1"),
        (edited("name: web1-v6", "name: web1"), "78:11: servers[4].name", "server name web1 is used twice"),
        (
            edited("[192.0.2.1/24,", "[192.0.2.1/33,"),
            "18:16: ports[0].gateways[0]",
            "address with a prefix length; give the addresses",
        ),
    ],
)
def test_error_names_place_field_and_fix(text: str, where: str, says: str) -> None:
    found = problems(text)
    assert len(found) == 1, found
    assert found[0].startswith(f"demo.yaml:{where}: "), found
    assert says in found[0]


def test_all_problems_are_named_at_once() -> None:
    assert len(problems(edited("sid: 3", "sid: 2").replace("vip: shop6", "vip: none").replace("10.0.0.14\n", "10.0.0.13\n"))) == 3


def test_key_ids_must_be_consecutive() -> None:
    two = TEXT.replace("metrics:", "  - id: 3\n    secret: 00112233445566778899aabbccddeeff\n\nmetrics:")
    assert "key ids 1 and 3 are not consecutive; give 1 or 2" in problems(two)[0]
    config = loads(two.replace("- id: 3\n", "- id: 2\n"), FILE)
    assert [key.id for key in config.cookie_keys] == [1, 2]


def test_secret_is_not_in_the_error() -> None:
    assert "deadbeef" not in problems(edited("secret: 0001", "secret: deadbeefzz"))[0]


def test_secret_file(tmp_path: Path) -> None:
    text = "\n".join(line for line in TEXT.splitlines() if "secret: " not in line)
    text = text.replace("  - id: 1\n\nmetrics", "  - id: 1\n    secret_file: key.hex\n\nmetrics")
    with pytest.raises(ConfigError, match=r"keys\[0\].secret_file: cannot be read"):
        loads(text, tmp_path / "demo.yaml")
    (tmp_path / "key.hex").write_text("00" * 15 + "\n")
    with pytest.raises(ConfigError, match=r"is 15 bytes long; write 16 to 32 bytes"):
        loads(text, tmp_path / "demo.yaml")
    (tmp_path / "key.hex").write_text("00" * 16 + "\n")
    assert loads(text, tmp_path / "demo.yaml").cookie_keys[0].secret == bytes(16)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "demo.yaml:1:1: is empty"),
        ("- 1", "demo.yaml:1:1: is not a mapping"),
        ("a: [", "demo.yaml:2:1: did not find expected node content"),
        ("device: 1\ndevice: 2", "demo.yaml:2:1: device: the key 'device' is here twice (first in line 1)"),
        ("a: &a [*a]", "demo.yaml:1:8: a[0]: *a stands for nothing"),
        ("---\na: 1\n---\nb: 2", "demo.yaml:3:1: a second document"),
        ("[a]: 1", "demo.yaml:1:1: a key that is not plain text"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ("- " * 100_000, "nested too deeply"),
        ("\0", "control characters are not allowed"),
    ],
)
def test_text_that_is_no_configuration(text: str, says: str) -> None:
    assert says in problems(text)[0]


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x80")
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "binary.yaml")


def test_sizes_of_the_program() -> None:
    text = large_config(MAX_SERVERS + 1, 4).replace("sid: 4096", "sid: 4095")
    assert any(f"servers: {MAX_SERVERS + 1} servers, the P4 program has room for {MAX_SERVERS}" in p for p in problems(text))
    assert any("513 VIPs, the P4 program has room for 512" in p for p in problems(large_config(513, 513)))


def test_too_many_weights() -> None:
    lines = []
    for line in large_config(100, 1).splitlines():
        sid = line.rpartition("sid: ")[2].rstrip("}") if "sid: " in line else None
        lines.append(line if sid is None else line.replace("}", f", weight: {int(sid) + 1}}}"))
    assert "100 different pairs of alpha and relative weight" in problems("\n".join(lines))[0]


@settings(max_examples=100)
@given(st.data())
def test_no_mutation_of_a_file_crashes(data: st.DataObject) -> None:
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


def test_mac() -> None:
    assert str(Mac(0x0200000000FE)) == "02:00:00:00:00:fe"
