# SPDX-License-Identifier: Apache-2.0
"""The running mapping against fake dispatchers: collection, computation, differences, and failures."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from ipaddress import ip_address
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dispatchers import FakeDispatcher, running
from frontage import cli
from frontage.config import Config, ConfigError, loads
from frontage.fields import IPAddress
from frontage.mapping.compute.prefixes import parse
from frontage.mapping.control.mapper import Mapper
from frontage.mapping.control.switch import change, whole
from frontage.mapping.services import Service, services_of, sites_of
from frontage.mapping.settings import EndUsers, ManagedDispatcher
from frontage.mapping.store.tables import Tables
from frontage.state.steering import EndUserMapping

FILMS = Service("films.example", 3, 2)
NEAR_ONE, NEAR_TWO = "2001:db8:c1::/48", "198.51.100.0/24"


@pytest.fixture
def sites() -> Iterator[list[FakeDispatcher]]:
    with running(3) as all_:
        yield all_


Services = tuple[Service, ...]


def addresses(count: int = 3) -> dict[int, IPAddress]:
    return {site: ip_address(f"2001:db8:10{site}::1") for site in range(1, count + 1)}


def mapper(
    folder: Path,
    sites: list[FakeDispatcher],
    *,
    site: int = 1,
    name: str = "one",
    services: tuple[Service, ...] = (FILMS,),
    **more: Any,
) -> Mapper:
    dispatchers = tuple(ManagedDispatcher(site=one.site, url=one.url) for one in sites)
    settings = EndUsers(store=f"sqlite:///{folder}/mapping.db", dispatchers=dispatchers, **more)
    found = Mapper(settings, addresses(), services, site=site, name=name)
    found._register()
    return found


async def start(one: Mapper) -> None:
    """Run two rounds: a dispatcher reports measurements only once it has a table."""
    await one.step(999.0)
    await one.step(1000.0)


def deploy(sites: list[FakeDispatcher]) -> None:
    """Give each site a replica of films.example, and add two client prefixes whose best sites are 1 and 2."""
    for one in sites:
        one.replica(100 * one.site, "films.example")
        one.measure(NEAR_ONE, 10_000 * one.site)
        one.measure(NEAR_TWO, 10_000 * (abs(one.site - 2) + 1))


def sites_for(one: FakeDispatcher, prefix: str) -> list[int]:
    return one.sites_for(FILMS.number, prefix)


async def test_dispatchers_get_tables_from_their_joint_measurements(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    deploy(sites)
    one = mapper(tmp_path, sites)
    await start(one)
    for site in sites:
        assert site.services == {3: "films.example"}
        assert site.details["films.example"] == {
            "name": "films.example",
            "id": 3,
            "deployment": 1,
            "redundancy": 2,
            "alpn": ["h3"],
            "policy": "latency",
        }
        assert sites_for(site, NEAR_ONE) == [1, 2]
        assert sites_for(site, NEAR_TWO)[0] == 2
        # A client in no region is served where it enters, and its first flight is copied to another site.
        assert site.sites_for(3)[0] == site.site
        assert len(site.sites_for(3)) == 2
    # Without changes nothing is written.
    before = [len(site.requests) for site in sites]
    await one.step(1002.0)
    written = [
        request for site, n in zip(sites, before, strict=True) for request in site.requests[n:] if request[0] in ("PUT", "PATCH")
    ]
    assert written == []


async def test_pushed_differences_equal_the_whole_table(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    deploy(sites)
    one = mapper(tmp_path, sites)
    await start(one)
    sites[2].replica(301, "books.example")
    sites[0].replica(100, "films.example", accepting=False)
    sites[1].measure("203.0.113.0/24", 1_000)
    await one.step(1002.0)
    assert [d.replaced for d in one.dispatchers] == [1, 1, 1]
    assert sites_for(sites[0], NEAR_ONE) == [2, 3]
    assert set(sites[0].services.values()) == {"films.example", "books.example"}
    sites[2].replicas = []
    await one.step(1004.0)
    assert [d.replaced for d in one.dispatchers] == [1, 1, 1]
    told = [site.tables() for site in sites]
    # Another controller without this history writes the same whole tables.
    for site in sites:
        site.version = None
    other = mapper(tmp_path, sites, name="other")
    await other.step(1004.5)
    assert other.engine is None
    assert [d.replaced for d in other.dispatchers] == [1, 1, 1]
    assert [site.tables() for site in sites] == told


async def test_service_moving_to_existing_deployment_costs_one_entry(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    """This holds for dispatchers and switches. The number of deployments is that of distinct site sets."""
    deploy(sites)
    one = mapper(tmp_path, sites, services=(FILMS, *(Service(f"s{n}.example", n, 1 + n % 2) for n in range(10, 30))))
    one.store.deploy([(f"s{n}.example", site) for n in range(10, 30) for site in ((1, 2, 3) if n % 2 else (1, 2))])
    await start(one)
    # Three sites with redundancy 2, like films.example, or two sites with redundancy 1.
    assert len(one.tables.deployments) == 2
    assert len(sites[0].services) == 21
    # Each has its default, and an entry for the region where another site is better.
    assert sites[0].mapping.keys() == {(1, 0), (1, 2), (2, 0), (2, 2)}
    before, told, pushed = one.tables, dict(sites[0].mapping), one.dispatchers[0].pushed
    one.store.register([Service("s10.example", 10, 2)])
    one.store.deploy([("s10.example", 3)])
    await one.step(1002.0)
    assert sites[0].mapping == told
    assert sites[0].deployments[10] == sites[0].deployments[3]
    assert sites[0].sites_for(10, NEAR_ONE) == [1, 2]
    assert one.dispatchers[0].pushed - pushed == 1
    names = {"films.example", *(f"s{n}.example" for n in range(10, 30))}
    found = change(before, one.tables, 1, names)
    assert (found.regions, found.deployments, found.choices) == ({}, {10: sites[0].deployments[3]}, {})


async def test_dead_site_is_left_out_within_an_interval_and_restored_later(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    deploy(sites)
    one = mapper(tmp_path, sites)
    await start(one)
    sites[0].stop()
    await one.step(1002.0)
    assert one.counters.sites_out == {1}
    assert one.dispatchers[0].error is not None
    assert sites_for(sites[1], NEAR_ONE) == [2, 3]
    assert 1 not in sites[2].sites_for(3)
    # It comes back empty, and gets the whole table.
    sites[0].start()
    await one.step(1004.0)
    assert one.counters.sites_out == set()
    assert one.dispatchers[0].error is None
    assert sites_for(sites[0], NEAR_ONE) == [1, 2]
    assert sites_for(sites[1], NEAR_ONE) == [1, 2]
    assert one.dispatchers[0].replaced == 2


async def test_site_that_dies_with_computing_controller_is_left_out_as_soon(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    deploy(sites)
    one, two = mapper(tmp_path, sites, site=1), mapper(tmp_path, sites, site=2)
    await start(one)
    await two.step(1001.0)
    assert (one.engine is not None, two.engine is not None) == (True, False)
    # Its dispatcher is gone, and so presumably `one`, whose lease has not expired.
    sites[0].stop()
    await two.step(1002.0)
    assert two.engine is not None
    assert sites_for(sites[1], NEAR_ONE) == [2, 3]
    # Only the dispatcher had failed: `one` stands by.
    await one.step(1002.5)
    assert one.engine is None


async def test_isolated_controller_takes_no_site_out(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    deploy(sites)
    one = mapper(tmp_path, sites)
    await start(one)
    before = one.tables.content
    for site in sites:
        site.stop()
    await one.step(1002.0)
    assert one.tables.content == before
    assert all(d.error for d in one.dispatchers)


async def test_refused_difference_is_followed_by_whole_table(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    deploy(sites)
    one = mapper(tmp_path, sites)
    await start(one)
    sites[0].clients.clear()
    sites[0].version = 1
    sites[1].replica(201, "books.example")
    await one.step(1002.0)
    assert [d.replaced for d in one.dispatchers] == [2, 1, 1]
    assert sites[0].clients == sites[1].clients


async def test_store_failure_is_reported_and_retried(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    deploy(sites)
    one = mapper(tmp_path, sites)
    await start(one)
    told = [site.tables() for site in sites]

    def rename(old: str, new: str) -> None:
        with one.store.engine.begin() as connection:
            connection.exec_driver_sql(f"ALTER TABLE {old} RENAME TO {new}")

    rename("service_choice", "elsewhere")
    sites[1].replica(201, "books.example")
    await one.step(1002.0)
    assert one.counters.failures == 1
    assert "no such table: service_choice" in str(one.counters.error)
    assert [site.tables() for site in sites] == told
    rename("elsewhere", "service_choice")
    await one.step(1004.0)
    assert one.counters.error is None
    assert all("books.example" in site.services.values() for site in sites)


async def test_new_leader_keeps_all_numbers(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    deploy(sites)
    one, two = mapper(tmp_path, sites), mapper(tmp_path, sites, name="two")
    await start(one)
    await two.step(1000.5)
    assert (one.engine is not None, two.engine is not None) == (True, False)
    assert two.tables.content == one.tables.content
    # Neither rewrites what the other has written.
    assert [d.replaced for d in two.dispatchers] == [0, 0, 0]
    told = [site.tables() for site in sites]
    content = two.tables.content
    await two.step(1020.0)
    assert two.engine is not None
    assert two.tables.content == content
    assert [site.tables() for site in sites] == told
    await one.step(1021.0)
    assert one.engine is None
    sites[1].replica(201, "books.example")
    await two.step(1022.0)
    assert "books.example" in sites[2].services.values()
    assert [d.replaced for d in two.dispatchers] == [0, 0, 0]


async def test_probes_go_to_active_prefixes_at_bounded_rate(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    for i in range(10):
        sites[0].measure(f"10.{i}.0.0/24", 5_000)
    one = mapper(tmp_path, sites, interval=2.0, probes_per_second=1.5)

    async def step(now: float) -> None:
        await one.step(now)
        assert one.prober.under_way is not None
        await one.prober.under_way

    await step(1000.0)  # the tables come first: then there are measurements
    for site in sites:
        site.probed.clear()
    await step(1000.5)
    one.prober._sites_probed_at = 0.0
    for site in sites:
        site.probed.clear()
    one.prober._cursors.clear()
    await step(1001.0)
    vteps = {str(address) for address in addresses().values()}
    assert set(sites[1].probed) & vteps == vteps - {"2001:db8:102::1"}
    asked = [address for address in sites[1].probed if address not in vteps]
    assert asked == ["10.0.0.1", "10.1.0.1", "10.2.0.1"]
    assert set(sites[0].probed) <= vteps
    for _ in range(2):
        await step(1002.0)
    assert [a for a in sites[1].probed if a not in vteps] == [f"10.{i}.0.1" for i in range(9)]
    # A probe's sample has the probed address, and counts for its prefix.
    sites[1].measure("10.0.0.1/32", 3_000)
    await one.step(1004.0)
    assert {cell: rtt for cell, rtt in one.store.measurements().cells.items() if cell[1] == 2} == {(parse("10.0.0.0/24"), 2): 3_000}


async def test_clients_in_no_region_go_to_site_nearest_to_their_entry(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    """Site 1 has no replica, so clients in no region that enter there go to the site nearest to site 1."""
    for one in sites[1:]:
        one.replica(100 * one.site, "films.example")
    sites[2].measure("2001:db8:101::1/128", 4_000)
    sites[1].measure("2001:db8:101::1/128", 9_000)
    await start(mapper(tmp_path, sites, services=(Service("films.example", 3, 1),)))
    assert [site.sites_for(3) for site in sites] == [[3], [2], [3]]


async def test_switch_differences_equal_whole_mapping(tmp_path: Path, sites: list[FakeDispatcher]) -> None:
    deploy(sites)
    states: list[Tables] = [Tables()]

    async def note(tables: Tables) -> None:
        states.append(tables)

    one = mapper(tmp_path, sites)
    one._on_change = note
    await one.step(1000.0)
    sites[0].replica(100, "films.example", accepting=False)
    sites[2].measure("203.0.113.0/24", 1_000)
    sites[2].replica(300, "books.example")
    await one.step(1002.0)
    sites[0].replica(100, "films.example")
    await one.step(1004.0)
    assert len(states) == 4
    mapping = EndUserMapping()
    for old, new in pairwise(states):
        mapping.apply(change(old, new, 1, {"films.example"}))
        assert mapping == whole(new, 1, {"films.example"})
    assert mapping.deployments.keys() == {3}
    assert {deployment for deployment, _ in mapping.choices} == set(mapping.deployments.values())
    assert mapping.choices[mapping.deployments[3], 0][0] == 1


BASE = (Path(__file__).parents[1] / "examples" / "quic.yaml").read_text(encoding="utf-8")


def config_text(tmp_path: Path, section: str = "") -> str:
    store = f"sqlite:///{tmp_path}/mapping.db"
    return BASE + f"\nsite: {{id: 1, vtep: '2001:db8:101::1'}}\nend_users:\n  store: {store}\n{section}"


def load(tmp_path: Path, section: str = "") -> Config:
    return loads(config_text(tmp_path, section), tmp_path / "frontage.yaml")


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("  hysteresis: 2\n", r'end_users.hysteresis: "2" is above the maximum of 1.0: give the share by which'),
        ("  interval: never\n", r'end_users.interval: invalid number "never": give the seconds between'),
        ("  dispatchers: [{site: 9, url: 'http://[::1]:80'}]\n", r"dispatchers\[0\].site: unknown site 9: use one of: 1"),
        (
            "  dispatchers: [{site: 1, url: 'ftp://x'}]\n",
            r'url: invalid dispatcher URL "ftp://x": give',
        ),
        (
            "  dispatchers: [{site: 1, url: 'http://a:1'}, {site: 1, url: 'http://a:1/'}]\n",
            r"http://a:1 is listed twice",
        ),
        (
            "  services: [{name: a, redundancy: 5}]\n",
            r'services\[0\].redundancy: "5" is above the maximum of 4: give the number of sites',
        ),
        ("  services: [{name: a}, {name: A}]\n", r"services\[1\].name: service a is listed twice: remove one"),
        ("mapping: m.json\n", r"mapping: the mapping is already computed by end_users: remove `mapping`, or `end_users`"),
    ],
)
def test_invalid_section_is_rejected_with_position_and_fix(tmp_path: Path, section: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"frontage.yaml:\d+:\d+: .*{message}"):
        load(tmp_path, section)


def test_section_sets_mapper_and_services(tmp_path: Path) -> None:
    found = load(tmp_path, "  services: [{name: Films.Example, redundancy: 2, policy: load}]\n")
    assert services_of(found) == ((Service("films.example", 0, 2, "load", ("h3",)),), frozenset())
    assert {site: str(vtep) for site, vtep in sites_of(found).items()} == {1: "2001:db8:101::1"}
    relative = loads(config_text(tmp_path).replace(f"sqlite:///{tmp_path}/", "sqlite:///"), tmp_path / "frontage.yaml")
    assert relative.end_users is not None
    assert relative.end_users.store == f"sqlite:///{tmp_path}/mapping.db"


def command(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(cli.app, ["mapping", *words], env={"COLUMNS": "200"})
    assert done.exit_code == code, done.output
    return done.output


@pytest.mark.parametrize("name", ["show", "explain", "import", "export"])
def test_every_command_has_help_with_example(name: str) -> None:
    assert f"Example: frontage mapping {name}" in command(name, "--help")


def test_commands_fill_and_show_the_store(tmp_path: Path) -> None:
    file = tmp_path / "frontage.yaml"
    file.write_text(config_text(tmp_path), encoding="utf-8")
    where = ("-c", str(file))
    rows = [(NEAR_ONE, 1, 12_000, "active"), ("2001:db8::/32", 1, 20_000, "passive")]
    latencies = tmp_path / "latencies.csv"
    latencies.write_text("prefix,site,rtt_us,source\n" + "".join(f"{p},{s},{r},{w}\n" for p, s, r, w in rows), encoding="utf-8")
    (tmp_path / "deployments.csv").write_text("name,site\nfilms.example,1\n", encoding="utf-8")
    (tmp_path / "services.csv").write_text("name,redundancy,policy,alpn\nfilms.example,1,load,h3 hq-interop\n", encoding="utf-8")
    assert "2 rows of measurements added" in command("import", str(latencies), *where)
    command("import", str(tmp_path / "deployments.csv"), *where)
    command("import", str(tmp_path / "services.csv"), *where)
    exported = list(csv.reader(io.StringIO(command("export", "measurements", *where))))
    assert [row[:3] for row in exported[1:]] == [[p, str(s), str(r)] for p, s, r, _ in sorted(rows, key=lambda row: row[0])]
    found = load(tmp_path)
    assert found.end_users is not None
    one = Mapper(found.end_users, sites_of(found), (), site=1)
    one._compute(1000.0)
    shown = json.loads(command("show", "--json", *where))
    assert (shown["client_prefixes"], shown["regions"]) == (1, 1)
    assert shown["table"][0] == {
        "name": "films.example",
        "id": 1,
        "deployment": 1,
        "redundancy": 1,
        "policy": "load",
        "sites": [1],
        "replicas": 0,
        "accepting": 0,
    }
    answer = json.loads(command("explain", "2001:db8:c1::7", "films.example", "--json", *where))
    assert (answer["deployment"], answer["sites"], answer["matched"]) == (1, [1], "2001:db8::/32")
    assert [(row["prefix"], row["rtt_us"], row["source"]) for row in answer["rtts"]] == [(NEAR_ONE, 12_000, "active")]
    words = " ".join(command("explain", "2001:db8:c2::/48", "films.example", *where).split())
    assert "go to site 1 (region 1 by 2001:db8::/32; deployment 1)" in words
    assert "go to site 1 (in no region" in command("explain", "192.0.2.1", "films.example", *where)
    assert "unknown service 'books.example': use one of: films.example" in command(
        "explain", "::1", "books.example", *where, code=1
    )
    assert "give an address, or a prefix" in command("explain", "10.0.0.1/8", "films.example", *where, code=1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prefix;site\n", ":1: unknown header 'prefix;site': use prefix,site,rtt_us,source, or name,site, or"),
        ("", ":1: unknown header '': use"),
        ("name,site\na,1\nb\n", ":3: 1 columns: give 2 (name,site)"),
        ("name,site\na,300\n", ":2: site: invalid value '300' (must be from 1 to 255): give a site id"),
        ("prefix,site,rtt_us,source\n10.0.0.1/8,1,5,active\n", ":2: prefix: invalid value '10.0.0.1/8'"),
        (
            "prefix,site,rtt_us,source\n10.0.0.0/8,1,nan,active\n",
            ":2: rtt_us: invalid value 'nan' (must be above 0): give",
        ),
        ("prefix,site,rtt_us,source\n10.0.0.0/8,1,5,guessed\n", ":2: source: invalid value 'guessed'"),
        ("name,redundancy,policy,alpn\na,1,best,h3\n", ":2: policy: invalid value 'best'"),
    ],
)
def test_invalid_csv_file_is_rejected_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    file, wrong = tmp_path / "frontage.yaml", tmp_path / "wrong.csv"
    file.write_text(config_text(tmp_path), encoding="utf-8")
    wrong.write_text(text, encoding="utf-8")
    assert f"{wrong}{message}" in command("import", str(wrong), "-c", str(file), code=1).replace("\n", "")
