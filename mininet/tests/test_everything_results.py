# SPDX-License-Identifier: Apache-2.0
"""All systems together: arrivals, the classification of failed visits, and the tables."""

import random
import tomllib
from dataclasses import replace
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import pytest

from frontage.cookie import CookieKey, Ip6Cookie
from frontage_demo.artemis import siteconfig
from frontage_demo.everything import comparison, diagram, results
from frontage_demo.everything import siteconfig as everything
from frontage_demo.everything.addresses import SWITCHES, balancers
from frontage_demo.everything.faults import TAKEOVER, Fault, Loss, Result, arrivals, cause, sid_of
from frontage_demo.everything.load import Finished, Flow, plan
from frontage_demo.everything.parts import FACTORIAL, NETWORKS, SYSTEMS, Parts
from frontage_demo.everything.trace import Followed, Hop
from frontage_testbed.wan.addresses import SiteAddresses

KEY = CookieKey(siteconfig.KEY["id"], bytes.fromhex(str(siteconfig.KEY["secret"])))  # type: ignore[arg-type]
SITE = SiteAddresses(2, "somewhere", 1, 2)
FIRST, SECOND = SITE.sids[0], SITE.sids[0] + 1
BALANCER = Fault("a balancer", "balancer", frozenset({FIRST}), 20.0)
SWITCH = Fault("a switch", "switch", frozenset(), 10.0)
LOST = Fault("a site", "site", frozenset({FIRST, SECOND}), 60.0)
FAULTS = [SWITCH, BALANCER, LOST]


HOPS = (
    Hop(0.0, "a", "edge2", "first flight", "client", "service address", 1262, (("S.service", "use_dispatcher(site = 1)"),), (2,)),
    Hop(0.5, "a", "edge1", "first flight: dispatched", "dispatcher", "best site or balancer", 1346, (), (4,)),
    Hop(
        46.0,
        "b",
        "edge1",
        "from the entry site",
        "entry site",
        "best site",
        1346,
        (("S.service", "use_dispatcher(site = 2)"),),
        (2,),
    ),
    Hop(190.0, "b", "edge2", "object", "real server", "client", 1514, (), (1,)),
)
VISIT = Followed("Germany", "a", "b", HOPS)


def cookie_address(sid: int) -> str:
    prefix = SITE.cookie_prefix.removesuffix("/64").removesuffix("::")
    low = KEY.seal_ip6(Ip6Cookie(sid))
    return ":".join([prefix, *(f"{low >> shift & 0xFFFF:x}" for shift in (48, 32, 16, 0))])


def visit(began: float, ended: float, sid: int | None, error: str | None = "timeout") -> Finished:
    flows = tuple(Flow(f"/{size}", size, 0.1, 0.1 + size / 1e6, error) for size in (5_000, 50_000, 500_000))
    return Finished("Germany", began, ended, "" if sid is None else cookie_address(sid), flows, error)


def test_cookie_address_names_its_server() -> None:
    assert sid_of(cookie_address(FIRST)) == FIRST
    assert sid_of("") is None
    assert sid_of("2001:db8:a:acdc::") is None


@pytest.mark.parametrize(
    ("failed", "expected"),
    [
        (visit(19.0, 50.0, FIRST), (BALANCER, True)),
        (visit(19.0, 50.0, None), (BALANCER, True)),
        (visit(20.5, 50.0, None), (BALANCER, False)),
        (visit(20.5, 50.0, SECOND), None),
        (visit(20.0 + TAKEOVER["balancer"] + 1, 50.0, None), None),
        (visit(9.0, 12.0, FIRST), None),
        (visit(59.0, 62.0, SECOND), (LOST, True)),
        (visit(61.0, 91.0, None), (LOST, False)),
    ],
)
def test_failed_visit_belongs_to_the_fault_of_its_server(failed: Finished, expected: object) -> None:
    assert cause(failed, FAULTS) == expected


def test_arrivals_depend_on_seed_only_and_move() -> None:
    assert arrivals(100.0, 1) == arrivals(100.0, 1) != arrivals(100.0, 2)
    early = [a.client for a in arrivals(1000.0, 1) if a.at < 400]
    late = [a.client for a in arrivals(1000.0, 1) if a.at >= 400]
    assert early.count("Germany") > 4 * early.count("Ohio")
    assert late.count("Ohio") > 4 * late.count("Germany")


def test_plan_has_the_requested_rate() -> None:
    visits = plan(["Germany", "Ohio"], 10.0, 1010.0, seed=random.Random(1).randrange(100), rate=0.5)
    assert len(visits) == pytest.approx(1000, rel=0.15)
    assert 10.0 <= visits[0].at <= visits[-1].at < 1010.0


def test_tables_have_all_classes_and_faults() -> None:
    done = [visit(0.0, 1.0, FIRST, error=None), visit(2.0, 3.0, SECOND)]
    side = comparison.side(done)
    assert (side.visits, side.failed) == (2, 1)
    assert all(times.count == 1 for times in side.rows.values())
    table = results.compared((side, side))
    assert table.count("| 1.00 |") == len(side.rows) == len(comparison.CLASSES) + 2
    result = Result(2, 6, (Loss(BALANCER, 1, 1, 0), Loss(SWITCH, 1, 0, 0)), (), ((3.0, [1]), (50.0, [2])))
    run = results.Run(60.0, 1, 555_000, VISIT, (side, side), result, 60.0, dict.fromkeys(NETWORKS, side))
    page = results.page(run)
    assert "| a balancer | 20 s | 1 | 1 | 0 |" in page
    assert "1 of 2 with Frontage" in page
    assert all(f"\n| {name} | " in page for name in NETWORKS)
    assert "## Contribution" not in results.page(replace(run, ablation={}))
    assert "### Whole pages" not in page
    slow = {**side.rows, comparison.PAGE: comparison.Times(1, 9.0, 9.0, 9.0)}
    assert "### Whole pages" in results.page(replace(run, sides=(replace(side, rows=slow), side)))
    assert "$" not in page


def test_factorial_has_each_combination_of_systems_once() -> None:
    combinations = [tuple(is_used(NETWORKS[name]) for is_used in SYSTEMS.values()) for name in FACTORIAL]
    assert sorted(combinations) == list(product((False, True), repeat=len(SYSTEMS)))


def test_effects_are_averages_with_and_without_a_system() -> None:
    def side(name: str) -> comparison.Side:
        seconds = 3.0 if NETWORKS[name].steering else 1.0
        return comparison.Side(1, 0, {comparison.PAGE: comparison.Times(1, seconds, seconds, seconds)})

    table = results.effects({name: side(name) for name in NETWORKS})
    assert "| Artemis | 3000 ms / 1000 ms |" in table
    assert "| AIFO | 2000 ms / 2000 ms |" in table


@pytest.mark.parametrize("name", NETWORKS)
def test_configurations_follow_the_parts(name: str) -> None:
    parts = NETWORKS[name]
    document = siteconfig.controller(
        SITE,
        [SITE],
        service_address="2001:db8:a:acdc::",
        dispatched=parts.steering,
        computed=False,
        tcp=False,
        placement=None,
        grpc="",
        metrics="",
        p4info=Path(),
        json_file=Path(),
        directory=Path(),
    )
    document = everything.controller(SITE, [], document, parts)
    headroom = [port["scheduler"]["k"] for device in document["devices"] for port in device["ports"] if "scheduler" in port]
    assert headroom == ([] if parts.scheduling is None else [parts.scheduling] * SWITCHES)
    assert document["vips"][0]["policy"] == ("cclb4" if parts.balancing else "hash")
    assert ("dispatchers" in document) == parts.steering
    balancer = tomllib.loads(everything.balancer(balancers(SITE)[0], Path("log"), parts))
    assert ("cookie" in balancer, "artemis" in balancer) == (parts.balancing, parts.steering)
    assert balancer["route"][0].get("real_servers", {}).get("policy") == parts.handoff


@pytest.mark.parametrize("part", ["scheduling", "steering", "handoff"])
def test_parts_without_cookies_are_rejected(part: str) -> None:
    others = {"scheduling": None, "steering": False, "handoff": None}
    used = {"scheduling": 0.5, "steering": True, "handoff": "per-connection"}
    with pytest.raises(ValueError, match="cookies"):
        Parts(balancing=False, **others | {part: used[part]})  # type: ignore[arg-type]


def test_comparison_rejects_a_run_without_a_successful_visit() -> None:
    with pytest.raises(ValueError, match="nothing was downloaded"):
        comparison.side([visit(0.0, 1.0, None)])


def test_diagram_shows_each_hop_between_its_machines() -> None:
    assert diagram.ends(HOPS[0], "a", "b") == (("", "client"), ("a", "dispatcher"))
    assert diagram.ends(HOPS[1], "a", "b") == (("a", "dispatcher"), ("b", "switches"))
    assert diagram.ends(HOPS[2], "a", "b") == (("a", "switches"), ("b", "dispatcher"))
    assert diagram.ends(HOPS[3], "a", "b") == (("b", "real servers"), ("", "client"))
    drawing = ElementTree.fromstring(diagram.draw(HOPS, "a", "b"))
    assert len(drawing.findall("{http://www.w3.org/2000/svg}circle")) == len(HOPS)
