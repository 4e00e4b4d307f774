# SPDX-License-Identifier: Apache-2.0
"""The computation of the mapping: orders, regions and choices, incrementally and at once."""

from __future__ import annotations

import math
from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontage.mapping.compute.engine import Engine
from frontage.mapping.compute.orders import Margin
from frontage.mapping.compute.prefixes import Cover, Prefix, parse
from frontage.mapping.compute.values import Changes, Measurements, Sites

SITES = range(1, 7)
PREFIXES = [
    parse(text)
    for text in (
        "0.0.0.0/0",
        "10.0.0.0/8",
        "10.1.0.0/16",
        "10.1.1.0/24",
        "10.1.2.0/24",
        "10.2.0.0/16",
        "192.0.2.0/24",
        "2001:db8::/32",
        "2001:db8:1::/48",
        "2001:db8:2::/48",
    )
]
EXACT = Margin(0.0, 0.0)

Cells = dict[tuple[Prefix, int], float]
Services = dict[str, tuple[list[int], int] | None]

# All RTTs differ, so that there are no ties.
cells = st.dictionaries(
    st.tuples(st.sampled_from(PREFIXES), st.sampled_from(SITES)),
    st.one_of(st.integers(1, 30).map(lambda n: n * 1000.0), st.just(math.nan)),
    max_size=12,
)
services = st.dictionaries(
    st.sampled_from([f"s{i}" for i in range(6)]),
    st.one_of(st.none(), st.tuples(st.lists(st.sampled_from(SITES), unique=True), st.integers(1, 3))),
    max_size=4,
)
steps = st.lists(st.tuples(cells, services), min_size=1, max_size=8)


class Installed:
    """Tables built from changes only."""

    def __init__(self) -> None:
        self.clients: dict[Prefix, int] = {}
        self.mapping: dict[tuple[int, int], Sites] = {}
        self.services: dict[str, int] = {}

    def apply(self, changes: Changes) -> None:
        for prefix, region in changes.clients.items():
            assert self.clients.get(prefix, 0) != region
            self.clients[prefix] = region
            if not region:
                del self.clients[prefix]
        for number, regions, choices in changes.mapping:
            for region, choice in zip(regions.tolist(), choices.tolist(), strict=True):
                self.mapping[number, region] = tuple(site for site in choice if site)
                if not any(choice):
                    del self.mapping[number, region]
        for name, deployment in changes.services.items():
            if deployment is None:
                self.services.pop(name, None)
            else:
                self.services[name] = deployment

    def choose(self, client: Prefix, service: str) -> Sites:
        """Return the sites as the switch looks them up."""
        covering = [p for p in self.clients if p.family == client.family and client.shortened(p.length) == p]
        region = self.clients[max(covering, key=lambda p: p.length)] if covering else 0
        return self.mapping.get((self.services[service], region), ())


def known_rtts(measured: Cells, client: Prefix) -> dict[int, float]:
    """Return the RTT of each site under the longest measured prefix that covers the client."""
    found: dict[int, float] = {}
    for prefix in sorted(PREFIXES, key=lambda p: p.length):
        if prefix.family == client.family and prefix.length <= client.length and client.shortened(prefix.length) == prefix:
            found |= {site: measured[prefix, site] for site in SITES if (prefix, site) in measured}
    return found


def run(engine: Engine, sequence: list[tuple[Cells, Services]]) -> tuple[Installed, Cells, dict[str, tuple[list[int], int]]]:
    installed, measured, deployed = Installed(), {}, {}
    for changed, moved in sequence:
        installed.apply(engine.update(Measurements.of(changed), moved))
        measured |= changed
        deployed |= moved
    measured = {cell: rtt for cell, rtt in measured.items() if not math.isnan(rtt)}
    return installed, measured, {name: wanted for name, wanted in deployed.items() if wanted is not None and wanted[0]}


@settings(max_examples=200)
@given(steps)
def test_increments_lead_to_best_measured_sites(sequence: list[tuple[Cells, Services]]) -> None:
    installed, measured, deployed = run(Engine(SITES, EXACT), sequence)
    assert installed.services.keys() == deployed.keys()
    for client in PREFIXES:
        rtts = known_rtts(measured, client)
        for name, (sites, redundancy) in deployed.items():
            chosen = installed.choose(client, name)
            best = sorted(rtts[site] for site in sites if site in rtts)[:redundancy]
            assert [rtts[site] for site in chosen] == best
            assert set(chosen) <= set(sites)


@settings(max_examples=200)
@given(steps, st.sampled_from([EXACT, Margin(0.3, 0.0), Margin(0.1, 2000.0)]))
def test_increments_equal_full_computation(sequence: list[tuple[Cells, Services]], margin: Margin) -> None:
    """With the same regions and the same orders, a full computation gives what the increments have given."""
    engine = Engine(SITES, margin)
    installed, measured, deployed = run(engine, sequence)
    # All measurements again: every row is checked, and nothing may change.
    again = engine.update(Measurements.of(measured), dict(deployed))
    assert (again.clients, again.mapping, again.deployments) == ({}, [], {})
    # An engine that sees only the final state has as many regions: without hysteresis their number is minimal.
    if margin == EXACT:
        whole = Engine(SITES, margin)
        other = Installed()
        other.apply(whole.update(Measurements.of(measured), deployed))
        ties = any(len(set(known_rtts(measured, p).values())) < len(known_rtts(measured, p)) for p in PREFIXES)
        if not ties:
            assert len(whole.partition.live) == len(engine.partition.live)
            assert other.clients.keys() == installed.clients.keys()
            for client in PREFIXES:
                for name in deployed:
                    assert other.choose(client, name) == installed.choose(client, name)


@settings(max_examples=100)
@given(steps, st.floats(0, 0.5), st.floats(0, 5000))
def test_chosen_sites_are_within_margin_of_best(sequence: list[tuple[Cells, Services]], share: float, slack: float) -> None:
    installed, measured, deployed = run(Engine(SITES, Margin(share, slack)), sequence)
    for client in PREFIXES:
        rtts = known_rtts(measured, client)
        for name, (sites, _) in deployed.items():
            best = min((rtts[site] for site in sites if site in rtts), default=None)
            chosen = installed.choose(client, name)
            assert bool(chosen) == (best is not None)
            if best is not None:
                assert rtts[chosen[0]] <= (best * (1 + share) + slack) * 1.000001


def test_client_moves_only_when_another_site_is_nearer_by_the_margin() -> None:
    engine, installed = Engine([1, 2], Margin(0.1, 1000.0)), Installed()
    client = parse("2001:db8:c1::/48")

    def measure(one: float, two: float) -> Sites:
        installed.apply(engine.update(Measurements.of({(client, 1): one, (client, 2): two}), {"films.example": ([1, 2], 1)}))
        return installed.choose(parse("2001:db8:c1::7"), "films.example")

    assert measure(20_000, 30_000) == (1,)
    assert measure(22_900, 20_000) == (1,)
    assert measure(23_100, 20_000) == (2,)
    assert measure(20_000, 22_000) == (2,)


def test_prefix_inherits_missing_rtts_per_site() -> None:
    engine, installed = Engine([1, 2, 3], EXACT), Installed()
    wide, narrow = parse("2001:db8::/32"), parse("2001:db8:c1::/48")
    rtts = Measurements.of({(wide, 1): 10.0, (wide, 2): 20.0, (narrow, 2): 5.0})
    installed.apply(engine.update(rtts, {"a": ([1, 2, 3], 2), "b": ([1], 1), "c": ([3], 1)}))
    inner, outer = parse("2001:db8:c1::7"), parse("2001:db8:c2::7")
    assert (installed.choose(inner, "a"), installed.choose(outer, "a")) == ((2, 1), (1, 2))
    assert engine.order_of(ip_address("2001:db8:c1::7")) == (2, 1)
    # There are no RTTs of site 3, nor of other clients.
    assert installed.choose(inner, "c") == ()
    assert installed.choose(parse("192.0.2.1"), "a") == ()
    assert engine.order_of(ip_address("192.0.2.1")) == ()
    # A prefix needs an entry only if its parent is in another region.
    installed.apply(engine.update(services={"a": None}))
    assert list(installed.clients) == list(engine.clients) == [wide]


def test_regions_keep_numbers_over_changes() -> None:
    engine = Engine([1, 2, 3], EXACT)
    prefixes = [parse(f"10.{i}.0.0/16") for i in range(30)]
    engine.update(
        Measurements.of({(p, s): 10.0 + (i + s) % 3 for i, p in enumerate(prefixes) for s in (1, 2, 3)}), {"a": ([1, 2, 3], 1)}
    )
    before = engine.clients
    assert len(set(before.values())) == 3
    # Two prefixes move between regions, and a new deployment splits regions.
    changes = engine.update(Measurements.of({(prefixes[0], 1): 1.0, (prefixes[1], 1): 1.0}), {})
    assert changes.clients.keys() <= set(prefixes[:2])
    changes = engine.update(services={"b": ([2, 3], 1)})
    assert all(before[p] == engine.clients[p] for p in prefixes[2:] if p not in changes.clients)
    assert not changes.clients.keys() & {p for p in prefixes[2:] if engine.clients[p] in before.values()}


def test_engine_adopts_installed_numbers() -> None:
    cells = {(parse(f"10.{i}.0.0/16"), s): float(1 + (7 * i + s) % 5 + i % 3 + s / 10) for i in range(40) for s in (1, 2, 3)}
    one, two = Engine([1, 2, 3], EXACT), Engine([1, 2, 3], EXACT)
    one.update(Measurements.of(dict(list(cells.items())[::-1])), {"b": ([1, 2], 1)})
    one.update(None, {"a": ([2, 3], 1)})
    numbers = {
        number: (tuple(d + 1 for d in deployment.sites), deployment.redundancy) for deployment, number in one.deployments.items()
    }
    two.adopt(one.clients, numbers)
    two.update(Measurements.of(cells), {"a": ([2, 3], 1), "b": ([1, 2], 1)})
    assert (two.clients, two.deployments) == (one.clients, one.deployments)


def test_regions_beyond_the_limit_are_left_out() -> None:
    engine = Engine([1, 2, 3], EXACT, max_regions=2)
    cells = {(parse(f"10.{i}.0.0/16"), s): 5.0 + (s != (1, 1, 1, 2, 2, 3)[i]) for i in range(6) for s in (1, 2, 3)}
    engine.update(Measurements.of(cells), {"a": ([1, 2, 3], 1)})
    assert engine.partition.left_out == 1
    assert parse("10.5.0.0/16") not in engine.clients
    assert len(engine.clients) == 5


@given(st.one_of(st.ip_addresses(), st.text("0123456789abcdef:./%", max_size=20)), st.one_of(st.none(), st.integers(0, 130)))
@settings(max_examples=300)
def test_prefix_parser_agrees_with_ipaddress(address: object, length: int | None) -> None:
    text = f"{address}" if length is None else f"{address}/{length}"
    try:
        expected = ip_network(text)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            parse(text)
        return
    found = parse(text)
    assert found.network == expected
    assert parse(str(found)) == found


@given(st.sets(st.tuples(st.integers(0, 15), st.integers(0, 4)), max_size=20))
@settings(max_examples=100)
def test_parent_is_longest_covering_prefix(drawn: set[tuple[int, int]]) -> None:
    prefixes = {Prefix(4, (value << 28) & ~((1 << 32 - length) - 1), length) for value, length in drawn}
    cover = Cover()
    half = set(sorted(prefixes)[::2])
    cover.add(half)
    cover.add(prefixes)
    for prefix, row in cover.rows.items():
        covering = [p for p in prefixes if p.length < prefix.length and prefix.shortened(p.length) == p]
        parent = int(cover.parent[row])
        assert (cover.prefixes[parent] if parent >= 0 else None) == max(covering, key=lambda p: p.length, default=None)
