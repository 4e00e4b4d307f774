# SPDX-License-Identifier: Apache-2.0
"""Names, addresses, sites and VIPs of three sites: `frontage check` finds each contradiction, with the place and the fix."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from frontage.cli import app
from frontage.config import ConfigError, loads
from frontage.naming import ServicePrefix, matches

PREFIX = ServicePrefix.parse("2001:db8:a57e::/48+16")
NAMES = ("films.example", "maps.example")
SITES = (1, 2, 3)
Document = dict[str, Any]
Damage = Callable[[Document, int, int], str]
"""Changes the configuration of one site, given the index of a VIP and the number of another site; returns the field to be named."""


def site(number: int) -> Document:
    """Return the consistent configuration of one of the sites."""
    hops = {f"2001:db8:10{n}::/48": ("backbone", "2001:db8:3::fe") for n in SITES if n != number}
    hops |= {"::/0": ("uplink", "2001:db8:1::fe"), f"2001:db8:10{number}::/64": ("rack", "2001:db8:2::fe")}
    return {
        "device": {"address": "127.0.0.1:9559", "device_id": 1, "cpu_port": 510, "pipeline": {"p4info": "p4info", "json": "json"}},
        "ports": [
            {"id": 1, "name": "uplink", "role": "client", "mac": "02:00:00:00:01:01", "gateways": ["2001:db8:1::1/64"]},
            {"id": 2, "name": "rack", "role": "server", "mac": "02:00:00:00:01:02", "gateways": ["2001:db8:2::1/64"]},
            {"id": 3, "name": "backbone", "role": "site", "mac": "02:00:00:00:01:03", "gateways": ["2001:db8:3::1/64"]},
        ],
        "routes": [{"prefix": prefix, "port": port, "next_hop": hop} for prefix, (port, hop) in hops.items()],
        "site": {"id": number, "vtep": f"2001:db8:10{number}::1"},
        "sites": [
            {
                "id": n,
                "name": f"site{n}",
                "vtep": f"2001:db8:10{n}::1",
                "sids": [800 * n, 800 * n + 799],
                "dispatchers": [f"2001:db8:10{n}::d"],
            }
            for n in SITES
        ],
        "dispatchers": [{"name": "dispatcher", "address": f"2001:db8:10{number}::d"}],
        "instances": [{"prefix": str(PREFIX), "names": ["*.example"]}],
        "vips": [
            {
                "name": name.partition(".")[0],
                "protocol": "udp",
                "port": 443,
                "cookie_prefix": f"2001:db8:c00{number}:{i}::/64",
                "artemis": {"name": name, "id": i + 1},
            }
            for i, name in enumerate(NAMES)
        ],
        "servers": [
            {
                "name": f"{name[:4]}1",
                "vip": name.partition(".")[0],
                "address": f"2001:db8:10{number}::{i + 16}",
                "port": 8443 + i,
                "sid": 800 * number + i,
            }
            for i, name in enumerate(NAMES)
        ],
        "keys": [{"id": 1, "secret": "00" * 32}],
    }


def _wrong_address(own: Document, vip: int, _other: int) -> str:
    own["vips"][vip]["address"] = "2001:db8:a57e:1::"
    return f"vips[{vip}].address"


def _address_of_the_other_name(own: Document, vip: int, _other: int) -> str:
    own["vips"][vip]["address"] = str(PREFIX.service_address(NAMES[1 - vip]))
    own["vips"][vip]["port"] = 8443
    return f"vips[{vip}].address"


def _name_of_no_instance(own: Document, vip: int, _other: int) -> str:
    own["vips"][vip] |= {"address": "2001:db8:b::1"}
    own["vips"][vip]["artemis"]["name"] = "films.test"
    return f"vips[{vip}].artemis.name"


def _address_without_name(own: Document, vip: int, _other: int) -> str:
    del own["vips"][vip]["artemis"]
    own["vips"][vip]["address"] = str(PREFIX.service_address(NAMES[vip]))
    return f"vips[{vip}].address"


def _colliding_names(own: Document, _vip: int, _other: int) -> str:
    own["instances"][0]["prefix"] = "2001:db8:a57e::/48+0"
    return "vips[1].artemis.name"


def _overlapping_instances(own: Document, _vip: int, _other: int) -> str:
    own["instances"].append({"prefix": "2001:db8:a57e:8000::/49+4", "names": ["*.test"]})
    return "instances[1].prefix"


def _server_in_the_prefix(own: Document, vip: int, _other: int) -> str:
    own["servers"][vip]["address"] = "2001:db8:a57e:77::1"
    own["neighbors"] = [{"address": "2001:db8:a57e:77::1", "port": "rack", "mac": "02:00:00:00:02:01"}]
    return f"servers[{vip}].address"


def _gateway_in_the_prefix(own: Document, _vip: int, _other: int) -> str:
    own["ports"][1]["gateways"].append("2001:db8:a57e:78::1/64")
    return "ports[1].gateways[1]"


def _cookie_prefix_in_the_prefix(own: Document, vip: int, _other: int) -> str:
    own["vips"][vip]["cookie_prefix"] = "2001:db8:a57e:79::/64"
    return f"vips[{vip}].cookie_prefix"


def _same_site(own: Document, _vip: int, other: int) -> str:
    own |= {key: site(other)[key] for key in ("site", "sites", "routes", "servers", "dispatchers")}
    return "site.id"


def _missing_site(own: Document, _vip: int, other: int) -> str:
    # The two others list each other.
    third = next(n for n in SITES if n not in (own["site"]["id"], other))
    own["sites"] = [entry for entry in own["sites"] if entry["id"] != third]
    return "sites"


def _other_vtep(own: Document, _vip: int, other: int) -> str:
    own["sites"][other - 1]["vtep"] = f"2001:db8:10{other}::2"
    return f"sites[{other - 1}].vtep"


def _other_sids(own: Document, _vip: int, other: int) -> str:
    own["sites"][other - 1]["sids"] = [800 * other + 100, 800 * other + 799]
    return f"sites[{other - 1}].sids"


def _other_site_name(own: Document, _vip: int, other: int) -> str:
    own["sites"][other - 1]["name"] = "elsewhere"
    return f"sites[{other - 1}].name"


def _other_tunnel(own: Document, _vip: int, other: int) -> str:
    own["sites"][other - 1]["tunnel"] = "gre"
    return f"sites[{other - 1}].tunnel"


def _other_location(own: Document, _vip: int, other: int) -> str:
    own["sites"][other - 1]["location"] = {"latitude": 1, "longitude": 2}
    return f"sites[{other - 1}].location"


def _other_dispatcher(own: Document, _vip: int, other: int) -> str:
    own["sites"][other - 1]["dispatchers"] = [f"2001:db8:10{other}::e"]
    return f"sites[{other - 1}].dispatchers"


def _other_id(own: Document, vip: int, _other: int) -> str:
    own["vips"][vip]["artemis"]["id"] = 77
    return f"vips[{vip}].artemis.id"


def _swapped_ids(own: Document, _vip: int, _other: int) -> str:
    for i, vip in enumerate(own["vips"]):
        vip["artemis"]["id"] = 2 - i
    return "vips[0].artemis.id"


def _other_kind_of_address(own: Document, vip: int, _other: int) -> str:
    own["vips"][vip]["artemis"]["dedicated_address"] = False
    return f"vips[{vip}].artemis.dedicated_address"


def _other_port(own: Document, vip: int, _other: int) -> str:
    own["vips"][vip]["port"] = 4433
    return f"vips[{vip}].port"


def _other_instances(own: Document, _vip: int, _other: int) -> str:
    own["instances"][0]["names"] = list(NAMES)
    return "instances"


def _other_bits(own: Document, vip: int, _other: int) -> str:
    own["instances"][0]["prefix"] = "2001:db8:a57e::/48+12"
    return f"vips[{vip}].address"


def _same_cookie_prefix(own: Document, vip: int, other: int) -> str:
    own["vips"][vip]["cookie_prefix"] = f"2001:db8:c00{other}:{vip}::/64"
    return f"vips[{vip}].cookie_prefix"


def _other_secret(own: Document, _vip: int, _other: int) -> str:
    own["keys"][0]["secret"] = "11" * 32
    return "keys[0]"


def _other_key(own: Document, _vip: int, _other: int) -> str:
    own["keys"][0]["id"] = 5
    return "keys"


CONTRADICTIONS: tuple[Damage, ...] = (
    _wrong_address,
    _address_of_the_other_name,
    _name_of_no_instance,
    _address_without_name,
    _colliding_names,
    _overlapping_instances,
    _server_in_the_prefix,
    _gateway_in_the_prefix,
    _cookie_prefix_in_the_prefix,
    _same_site,
    _missing_site,
    _other_vtep,
    _other_sids,
    _other_site_name,
    _other_tunnel,
    _other_location,
    _other_dispatcher,
    _other_id,
    _swapped_ids,
    _other_kind_of_address,
    _other_port,
    _other_instances,
    _other_bits,
    _same_cookie_prefix,
    _other_secret,
    _other_key,
)


def check(folder: Path, documents: list[Document]) -> list[Document]:
    """Return the problems that `frontage check` finds in the configurations of all sites."""
    files = [folder / f"site{i}.yaml" for i in range(len(documents))]
    for file, document in zip(files, documents, strict=True):
        file.write_text(yaml.safe_dump(document, sort_keys=False))
    done = CliRunner().invoke(app, ["check", *map(str, files), "--json"])
    problems: list[Document] = json.loads(done.stdout).get("problems", [])
    assert done.exit_code == (1 if problems else 0), done.output
    return problems


def field(problem: Document) -> str:
    text = ""
    for part in problem["path"]:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def test_consistent_sites_have_no_problems(tmp_path: Path) -> None:
    assert check(tmp_path, [site(n) for n in SITES]) == []


@pytest.mark.parametrize("damage", CONTRADICTIONS, ids=lambda damage: damage.__name__.strip("_"))
def test_each_contradiction_is_found(tmp_path: Path, damage: Damage) -> None:
    """The site and the VIP that are wrong are drawn with a seed. The last file is the wrong one, as two others agree."""
    rng = random.Random(damage.__name__)
    numbers = rng.sample(SITES, len(SITES))
    documents = [site(n) for n in numbers]
    expected = damage(documents[-1], rng.randrange(len(NAMES)), numbers[0])
    problems = check(tmp_path, documents)
    assert (str(tmp_path / "site2.yaml"), expected) in [(p["file"], field(p)) for p in problems], problems
    assert all(p["what"] and p["fix"] for p in problems)
    assert all(p["line"] for p in problems)


def test_vip_without_an_address_gets_that_of_its_name() -> None:
    config = loads(yaml.safe_dump(site(1)), Path("site.yaml"))
    assert [vip.address for vip in config.vips] == [PREFIX.service_address(name) for name in NAMES]


def test_name_of_several_instances_needs_an_address() -> None:
    document = site(1)
    document["instances"].append({"prefix": "198.51.100.0/24+8", "names": ["films.example"]})
    with pytest.raises(ConfigError, match=r"vips\[0\]\.address: missing"):
        loads(yaml.safe_dump(document), Path("site.yaml"))


@pytest.mark.parametrize(
    ("instance", "message"),
    [
        ({"prefix": "2001:db8::/48", "names": ["*"]}, r"instances\[0\]\.prefix: invalid service prefix"),
        ({"prefix": "2001:db8::/48+81", "names": ["*"]}, r"more than 128 bits"),
        ({"prefix": "2001:db8::/48+8", "names": ["a.*.example"]}, r"instances\[0\]\.names\[0\]: invalid pattern"),
        ({"prefix": "2001:db8::/48+8", "names": []}, r"instances\[0\]\.names: has 0 items"),
    ],
)
def test_invalid_instances_are_rejected(instance: Document, message: str) -> None:
    document = site(1) | {"instances": [instance]}
    with pytest.raises(ConfigError, match=message):
        loads(yaml.safe_dump(document), Path("site.yaml"))


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("Films.example", ["films.EXAMPLE."], ["a.films.example", "example"]),
        ("*.films.example", ["a.films.example", "a.b.films.example"], ["films.example", "afilms.example", ".films.example"]),
        ("*", ["x", "films.example"], []),
    ],
)
def test_patterns(pattern: str, matching: list[str], others: list[str]) -> None:
    """The Rust crate has the same cases (`instances.rs`)."""
    assert all(matches(pattern, name) for name in matching)
    assert not any(matches(pattern, name) for name in others)


def test_names_shows_addresses_and_collisions(tmp_path: Path) -> None:
    document = site(1)
    document["instances"][0]["prefix"] = "2001:db8:a57e::/48+1"
    document["vips"][1]["port"] = 8443
    file = tmp_path / "site.yaml"
    file.write_text(yaml.safe_dump(document))
    done = CliRunner().invoke(app, ["names", "a.example", "-c", str(file), "--json"])
    found = {a["name"]: a for a in json.loads(done.stdout)}
    prefix = ServicePrefix.parse("2001:db8:a57e::/48+1")
    assert {name: a["address"] for name, a in found.items()} == {n: str(prefix.service_address(n)) for n in (*NAMES, "a.example")}
    for name, assignment in found.items():
        same = [n for n in found if n != name and found[n]["address"] == assignment["address"]]
        assert sorted(assignment["collisions"]) == sorted(same)
    assert found["films.example"]["collisions"], "three names share two addresses"
    for arguments, message in ((["b.test"], "b.test does not belong to an instance"), (["a\nb"], "invalid name")):
        done = CliRunner().invoke(app, ["names", *arguments, "-c", str(file)])
        assert done.exit_code == 1 and message in done.output
