# SPDX-License-Identifier: Apache-2.0
"""Records on a supercluster: the checker detects violations, and a short run of failures causes none."""

import asyncio
import os
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO

import pytest

from frontage_demo.supercluster import page
from frontage_demo.supercluster.demand_clients import Request
from frontage_demo.supercluster.failures import Cause, Failures, Fault, FaultKind
from frontage_demo.supercluster.following import FollowPhase, FollowPlan, FollowResult, Sample
from frontage_demo.supercluster.history import NEVER, Operation, load, violations
from frontage_demo.supercluster.optimal import least_mean_rtt, mean_rtt
from frontage_demo.supercluster.partitions import Expected, PartitionResult
from frontage_demo.supercluster.plan import Phase, Plan, Result, choose
from frontage_demo.supercluster.results import Results
from frontage_demo.supercluster.servers import Region, servers
from frontage_demo.supercluster.storm import Storm
from frontage_demo.supercluster.testbed import Programs, bring_up
from frontage_records.jetstream.connection import MIN_SERVER_VERSION
from frontage_records.record import Consistency
from frontage_testbed.nodes import NodeError
from testbeds import Sandboxed, needs_root, only_long

REPOSITORY = Path(__file__).resolve().parents[2]
NATS = Path(os.environ.get("NATS_SERVER", REPOSITORY / "build" / "nats-server"))
PAIRS = ((1, 2), (1, 3), (2, 3))
SHORT = Plan(rate=45, hold=2, records=3, seed=1)


def put(value: str, begin: int, end: int = NEVER, version: int | None = None, **more: object) -> Operation:
    return replace(Operation(1, "guid", "total", "put", value, begin, end, version), **more)  # type: ignore[arg-type]


def read(value: str, begin: int, end: int, version: int, **more: object) -> Operation:
    return replace(Operation(2, "guid", "total", "read", value, begin, end, version), **more)  # type: ignore[arg-type]


def check(operations: Sequence[Operation], value: str, version: int) -> list[str]:
    """Check a history after which all sites read the same."""
    consistency = operations[0].consistency
    final = {(s, "guid"): read(value, 90, 91, version, site=s, consistency=consistency) for s in (1, 2)}
    return violations(operations, final)


def test_consistent_histories_pass() -> None:
    two = [put("a", 1, 2, 1), put("b", 3, 6, 2)]
    assert check(two, "b", 2) == []
    assert check([*two, read("a", 4, 5, 1), read("b", 4, 5, 2)], "b", 2) == []
    # The write is done, not done, or done later.
    unknown = [*two, put("c", 4)]
    assert check(unknown, "b", 2) == []
    assert check(unknown, "c", 3) == []
    # A mirror may lag.
    late = [replace(operation, consistency="total-writes") for operation in [*two, read("a", 8, 9, 1)]]
    assert check(late, "b", 2) == []


@pytest.mark.parametrize(
    ("operations", "value", "version", "violation"),
    [
        ([put("a", 1, 5, 1), put("b", 2, 6, 1)], "b", 1, "a write is lost"),
        ([put("a", 1, 2, 1), put("b", 3, 4, 2)], "a", 1, "writes are lost"),
        ([put("a", 1, 2, 1), put("b", 3, 4, 2), read("a", 5, 6, 1)], "b", 2, "given to a read"),
        ([put("a", 1, 2, 2), put("b", 3, 4, 1)], "a", 2, "given to a put"),
        ([put("a", 1, 2, 1), read("ghost", 3, 4, 2)], "a", 1, "never written"),
        ([put("a", 5, 6, 1), read("a", 1, 2, 1)], "a", 1, "before it was written"),
        ([put("a", 1, 2, 1), read("a", 3, 4, 2)], "a", 1, "belongs to another write"),
        ([put("a", 1, 2, 1), put("b", 3, 4, 3)], "b", 3, "done twice"),
    ],
)
def test_inconsistent_histories_are_detected(operations: list[Operation], value: str, version: int, violation: str) -> None:
    assert any(violation in what for what in check(operations, value, version))


def test_eventual_sites_must_agree_on_the_latest_write() -> None:
    writes = [put("a", 1, 2, 70, consistency="eventual"), put("b", 3, 4, 60, consistency="eventual")]
    assert check(writes, "a", 70) == []
    assert any("a write is lost" in what for what in check(writes, "b", 60))
    apart = {(1, "guid"): read("a", 90, 91, 70), (2, "guid"): read("b", 90, 91, 60)}
    assert any("do not agree" in what for what in violations(writes, apart))


def test_histories_survive_saving(tmp_path: Path) -> None:
    history = [put("a", 1, 2, 1), put("ä", 3)]
    file = tmp_path / "history"
    file.write_text("".join(f"{operation.line()}\n" for operation in history))
    assert load([file]) == history


def test_page_contains_results(tmp_path: Path) -> None:
    homes = {"guid": 1, "other": 2, "third": 3}
    phases = [Phase("quiet", 0, 10**9), Phase("node killed", 10**9, 3 * 10**9)]
    puts = [put(f"{n}", n * 10**8, n * 10**8 + 2 * 10**6, n + 1) for n in range(10)]
    result = Result(puts, homes, phases, {1: {"contention": 2}}, ["p0 to 2: done after 1.0 s"], [])
    sample = Sample(1, 20.0, 5.0, 70.0), Sample(2, 5.1, 5.0, 9.0), Sample(3, 5.0, 5.0, 8.0)
    phase = FollowPhase("demand moves", 0, 60, [Sample(0, 20.0, 5.0, 0.0), *sample])
    following = FollowResult([phase], [failed("total", "read", 1, 30, 10)], KINDS, capacity={1: 900.0})
    partitions = PartitionResult(seeds=10, cuts=1, writes=70, at_cut_site=20, convergence=[4.0])
    results = Results(result, following, partitions)
    text = page.page(results, SHORT, FollowPlan())
    assert "It found no violation." in text
    assert "2 `contention`" in text
    assert "| quiet | 1 | 10 | 2 | 2 | 0.1 / 1.0 | 1.0 / 1.0 | 1.0 / 1.0 |" in text
    page.draw(result, tmp_path / "update.svg")
    assert (tmp_path / "update.svg").read_text().count("<svg ") == 1
    assert "| demand moves | 20.0 | 20.0 | 5.1 | 5.0 | 5.0 | 2 | 70 | 8 | 1 | 1 `engine_unavailable` |" in text
    assert "| demand moves | none | other | read, `total` | 1 | `engine_unavailable` | 1 |" in text
    assert "There are 10 seeds" in text
    results.storm = replace(result, violations=["a write is lost"])
    assert "**Violations**" in page.page(results, SHORT, FollowPlan())
    assert results.violations == ["a write is lost"]


KINDS = {str(kind): kind for kind in (Consistency.EVENTUAL, Consistency.TOTAL_WRITES, Consistency.TOTAL)}


def failed(guid: str, kind: str, region: int, begin: float, seconds: float, result: str = "engine_unavailable") -> Request:
    return Request(region, guid, kind, begin, seconds, result)


@pytest.mark.parametrize(
    ("fault", "request_", "cause"),
    [
        (FaultKind.REGION, failed("total", "read", 1, 101, 10), Cause.ORDER),
        (FaultKind.REGION, failed("total", "read", 1, 91, 10), Cause.ORDER),
        (FaultKind.REGION, failed("total", "read", 1, 80, 10), Cause.OTHER),
        (FaultKind.REGION, failed("total", "read", 1, 116, 10), Cause.OTHER),
        (FaultKind.REGION, failed("total-writes", "write", 1, 101, 10), Cause.ORDER),
        (FaultKind.REGION, failed("total-writes", "read", 1, 101, 10), Cause.OTHER),
        (FaultKind.REGION, failed("eventual", "write", 2, 101, 10), Cause.OTHER),
        (FaultKind.LINKS, failed("total", "read", 2, 101, 10), Cause.OTHER),
        (FaultKind.LINKS, failed("total", "read", 3, 101, 10), Cause.ORDER),
        (FaultKind.LINKS, failed("eventual", "read", 2, 101, 10), Cause.REPLICA),
        (FaultKind.LINKS, failed("eventual", "read", 1, 101, 10), Cause.OTHER),
        (FaultKind.SERVER, failed("eventual", "write", 1, 100.5, 15, "outcome_unknown"), Cause.IN_FLIGHT),
        (FaultKind.SERVER, failed("eventual", "write", 1, 104, 15, "outcome_unknown"), Cause.OTHER),
    ],
)
def test_failed_requests_are_classified(fault: FaultKind, request_: Request, cause: Cause) -> None:
    """Site 2 fails from 100 to 106 s. It orders the ordered records; the eventual one is at the other sites."""
    placed = {"eventual": (1, 3), "total-writes": (2, 3), "total": (2, 1)}
    assert Failures(KINDS, [Fault(fault, 2, 100, 106, placed)]).cause(request_) is cause


def test_slow_phases_and_unexplained_failures_are_violations() -> None:
    def phase(name: str, begin: float, means: Sequence[float], fault: Fault | None = None) -> FollowPhase:
        return FollowPhase(name, begin, begin + 60, [Sample(number, mean, 5.0, 0.0) for number, mean in enumerate(means)], fault)

    cut = Fault(FaultKind.LINKS, 2, 120, 126, {"total": (2, 1)})
    phases = [phase("good", 0, (9, 9, 5.2, 5)), phase("late", 60, (9, 9, 9, 5)), phase("cut", 120, (9, 9, 9, 9), cut)]
    requests = [failed("total", "read", 1, 30, 10), failed("total", "read", 1, 121, 10)]
    result = FollowResult(phases, requests, KINDS)
    assert result.late() == ["late: the records follow after 3 epochs"]
    (defect,) = result.defects()
    assert defect.startswith("good: no fault explains 1 failed requests")


def test_optimum_needs_the_right_sites() -> None:
    demand = {"a": {1: 80.0, 2: 15.0, 3: 5.0}, "b": {1: 5.0, 2: 80.0, 3: 15.0}}
    least = least_mean_rtt(demand, {"a": 2, "b": 2}, (1, 2, 3))
    means = {(x, y): mean_rtt(demand, {"a": x, "b": y}) for x in PAIRS for y in PAIRS}
    assert min(means.values()) == pytest.approx(least)
    assert least < sorted(means.values())[1]


def test_lost_update_is_detected() -> None:
    guids = {"c": Consistency.COUNTER, "s": Consistency.SET, "m": Consistency.MAP, "e": Consistency.EVENTUAL}
    expected = Expected(guids, latest=(7, "x"), sum=5, members={"0", "x"}, entries={"k": 0, "k1": "x"})
    good = {"c": {"k": 5}, "s": {"k": ["0", "x"]}, "m": {"k": 0, "k1": "x"}, "e": {"by": "x"}}
    assert expected.missing(good) == []
    for guid, bad in {"c": {"k": 4}, "s": {"k": ["0"]}, "m": {"k": 0}, "e": {"by": "0"}}.items():
        assert len(expected.missing(good | {guid: bad})) == 1
    assert expected.missing(good | {"c": {"k": 6}}), "a write was done twice"
    expected.unknown.add("c")
    assert expected.missing(good | {"c": {"k": 6}}) == []


def needs_nats() -> None:
    if not NATS.is_file():
        pytest.skip(f"no nats-server of at least {MIN_SERVER_VERSION}: make build/nats-server, or its path in NATS_SERVER")


def assert_consistent(result: Result, phases: Sequence[str]) -> None:
    """Assert that there are no violations, all moves ended, and some client could write in each phase."""
    assert result.violations == []
    assert [phase.name for phase in result.phases] == phases
    for phase in result.phases:
        assert any(
            operation.kind == "put" and operation.version is not None and phase.begin <= operation.end < phase.end
            for operation in result.operations
        ), phase.name
    stream_moves = [line for line in result.moves if " records: " not in line]
    assert len(stream_moves) == 2
    assert all(": done after " in line or " again after " in line for line in stream_moves), result.moves


PHASES = ["quiet", "node killed", "node killed: back", "region killed", "region killed: back"]
MOVES = ["stream moved", "stream and records moved, node killed", "quiet again"]


@only_long
@pytest.mark.slow(seconds=65)
def test_failures_on_one_machine_lose_nothing(tmp_path: Path) -> None:
    """Run all phases except those with cut links, which one machine does not have."""
    needs_nats()

    def spawn(command: Sequence[str | Path], log: IO[bytes]) -> subprocess.Popen[bytes]:
        words = [str(word) for word in command]
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    regions = [Region(site, "127.0.0.1", spawn) for site in (1, 2, 3)]
    nats = servers(NATS, tmp_path, regions)
    try:
        result = asyncio.run(Storm(nats, regions, tmp_path, SHORT, None).run())
    finally:
        nats.stop()
    assert_consistent(result, [*PHASES, *MOVES])


@needs_root
@only_long
@pytest.mark.slow(seconds=115)
def test_failures_over_a_wide_area_lose_nothing(tmp_path: Path) -> None:
    needs_nats()
    folder = Path(os.environ.get("FRONTAGE_PROGRAMS", REPOSITORY / "target" / "release"))
    try:
        programs = Programs.of(folder, NATS)
    except NodeError as error:
        pytest.skip(str(error))

    def body(box):  # type: ignore[no-untyped-def]
        with bring_up(programs, box.scratch, SHORT.seed) as testbed:
            storm = Storm(testbed.servers, testbed.regions, box.scratch, SHORT, testbed.cut)
            return asdict(asyncio.run(storm.run()))

    saved = Sandboxed(body, tmp_path).result()
    operations = [Operation(**entry) for entry in saved["operations"]]
    phases = [Phase(**entry) for entry in saved["phases"]]
    result = Result(operations, saved["homes"], phases, saved["counts"], saved["moves"], saved["violations"])
    assert_consistent(result, [*PHASES, "links cut", "links back", *MOVES])


def test_homes_are_even_and_in_one_partition_each() -> None:
    homes = choose([1, 2, 3], 5)
    assert sorted(homes.values()) == [1] * 5 + [2] * 5 + [3] * 5
