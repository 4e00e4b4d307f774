# SPDX-License-Identifier: Apache-2.0
"""Compile the public TNA programs, run their own PTF tests on softswitch, and give a reason for each failure.

Needs OPEN_P4STUDIO, a checkout of github.com/p4lang/open-p4studio, which need not be built, and root for network namespaces.
The tests and their BfRuntime client are the checkout's, unmodified. If P4C_TOFINO is a command that runs the open compiler for
Tofino (p4c-barefoot), its P4Info and BfRuntime schemas are compared with those of softswitch-p4c. Updates docs/conformance.md, and
writes counts to build/tna-conformance/result.json and logs to build/tna-conformance/tests. Fails if a program or test fails
without a reason in explained_tna.toml, or passes although it has one.

Examples:
  make tna-conformance OPEN_P4STUDIO=../open-p4studio
  OPEN_P4STUDIO=../open-p4studio conformance/tna_conformance.py --program tna_register --test IndirectRegisterTest
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import explained
import report
from corpus import CorpusError
from explained import ExplainedError
from outcomes import Outcome, surprises
from tna import client, compilers, page, ptf
from tna.compilers import Compilation
from tna.page import Results
from tna.programs import Checkout, Program, Suite
from tools import ROOT, ToolError, own

REASONS = explained.FILE.with_name("explained_tna.toml")
BUILD = client.BUILD
Item = TypeVar("Item")
NO_P4C_TOFINO = "skipped: comparison of P4Info and schemas: set P4C_TOFINO to a command that runs the open compiler for Tofino"


def select(checkout: Checkout, name: str | None, test: str | None) -> list[Suite]:
    """Return the suites with this name, or below it, reduced to this test. Raises CorpusError if the name or test is unknown."""
    named = [suite for suite in checkout.suites() if name is None or f"{suite.name}/".startswith(f"{name}/")]
    if not named and name not in {program.name for program in checkout.programs()}:
        raise CorpusError(f"unknown program {name}: see --list")
    if test is None:
        return named
    found = [replace(suite, tests=(test,)) for suite in named if test in suite.tests]
    if not found:
        raise CorpusError(f"unknown test {test}: see --list")
    return found


def needed(programs: Sequence[Program], suites: Sequence[Suite], name: str | None) -> list[Program]:
    """Return the programs with this name and those of the suites; all programs if a suite loads programs itself."""
    if any(suite.program is None for suite in suites):
        return list(programs)
    return [program for program in programs if program.name == name or any(suite.program == program for suite in suites)]


def track(check: str, do: Callable[[Item], Outcome], items: Sequence[Item], jobs: int, console: Console) -> list[Outcome]:
    """Run a check on these items, `jobs` at a time, and show progress and failures. Return the outcomes in order."""
    columns = (TextColumn("{task.description:<20}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    done: dict[int, Outcome] = {}
    with Progress(*columns, console=console) as progress, ThreadPoolExecutor(jobs) as pool:
        numbers = {pool.submit(do, item): number for number, item in enumerate(items)}
        try:
            for future in progress.track(as_completed(numbers), total=len(items), description=check):
                outcome = done[numbers[future]] = future.result()
                if not outcome.passed:
                    console.print(f"{check}: {outcome.name}: {outcome.seen}", markup=False, soft_wrap=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [done[number] for number in range(len(items))]


def compilations(programs: Sequence[Program], folder: str) -> list[Compilation]:
    return [Compilation(program, chip, BUILD / folder / chip.name / program.name) for program in programs for chip in program.chips]


def compare(
    checkout: Checkout, ours: Sequence[Compilation], command: list[str], jobs: int, console: Console
) -> dict[str, list[Outcome]]:
    """Compile with the open compiler for Tofino, and compare its P4Info and schemas."""
    theirs = {work.name: work for work in compilations([work.program for work in ours], "p4c")}

    def p4info(work: Compilation) -> Outcome:
        compilers.compile_peer(command, checkout, theirs[work.name])
        return compilers.compare_p4info(work, theirs[work.name])

    def schema(work: Compilation) -> Outcome:
        return compilers.compare_schemas(work, theirs[work.name])

    return {"p4info": track("p4info", p4info, ours, jobs, console), "schema": track("schema", schema, ours, jobs, console)}


def measure(args: argparse.Namespace, checkout: Checkout, console: Console) -> int:
    complete = args.program is None and args.test is None
    reasons = explained.load(REASONS)
    suites = select(checkout, args.program, args.test)
    programs = checkout.programs() if complete else needed(checkout.programs(), suites, args.program)
    peer = compilers.tofino_compiler()
    compiler = own("SOFTSWITCH_P4C", "softswitch-p4c")
    runner = ptf.Runner(own("SOFTSWITCH", "softswitch"), BUILD / "programs", BUILD / "tests", args.seconds)
    client.prepare(checkout)
    ours = compilations(programs, "programs")
    checks = {"compile": track("compile", partial(compilers.compile_own, compiler, checkout), ours, args.jobs, console)}
    if peer:
        checks |= compare(checkout, ours, peer, args.jobs, console)
    else:
        console.print(NO_P4C_TOFINO)
    tests = [(suite, test) for suite in suites for test in suite.tests]
    checks["ptf"] = track("ptf", lambda item: runner.run(*item), tests, args.jobs, console)
    return finish(Results(checks), checkout, reasons, complete, console)


def finish(results: Results, checkout: Checkout, reasons: page.Reasons, complete: bool, console: Console) -> int:
    """Report the outcomes that contradict the reasons, write the results of a complete run, and return the exit status."""
    contradictions = 0
    for check, outcomes in results.checks.items():
        console.print(f"{check}: {sum(outcome.passed for outcome in outcomes)} of {len(outcomes)} pass")
        for line in surprises(outcomes, reasons.get(check, {}), complete, REASONS.name):
            contradictions += 1
            console.print(f"{check}: {line}", style="red", markup=False, soft_wrap=True)
    if complete:
        result = {**results.counts(), "unexplained": contradictions, "open-p4studio": checkout.version()}
        (BUILD / "result.json").write_text(json.dumps(result, indent=2) + "\n")
        report.renew(page.blocks(results, checkout, reasons))
        console.print(f"written: {(BUILD / 'result.json').relative_to(ROOT)} and {report.PAGE.relative_to(ROOT)}")
    if contradictions:
        console.print(f"{contradictions} outcomes contradict conformance/{REASONS.name}", style="red")
    return 1 if contradictions else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--program", metavar="NAME", help="only this program or folder of tests; does not write docs/conformance.md"
    )
    parser.add_argument("--test", metavar="NAME", help="only this test; does not write docs/conformance.md")
    parser.add_argument("--list", action="store_true", help="list the programs with their tests")
    parser.add_argument("--jobs", metavar="N", type=int, default=2, help="tests that run at once [default: %(default)s]")
    parser.add_argument(
        "--seconds",
        metavar="N",
        type=float,
        default=ptf.TIME_LIMIT,
        help="time after which a test counts as failed [default: %(default)g]",
    )
    args = parser.parse_args()
    console = Console(stderr=True, highlight=False)
    try:
        checkout = Checkout.find(os.environ.get("OPEN_P4STUDIO", ""))
        if args.list:
            print("\n".join(f"{suite.name}: {' '.join(suite.tests)}" for suite in checkout.suites()))
            return
        if os.geteuid() != 0:
            raise ToolError("network namespaces need root: run as root")
        sys.exit(measure(args, checkout, console))
    except (CorpusError, ToolError, ExplainedError) as error:
        sys.exit(f"tna-conformance: {error}")


if __name__ == "__main__":
    main()
