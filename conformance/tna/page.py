# SPDX-License-Identifier: Apache-2.0
"""The blocks of docs/conformance.md on TNA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import report
from outcomes import Outcome
from tna.programs import CHIPS, Checkout, Program, Suite

TITLES = {
    "compile": ("Programs that do not compile", "programs"),
    "ptf": ("Failing PTF tests", "tests"),
    "p4info": ("Different P4Info", "programs"),
    "schema": ("Different schemas", "programs"),
}
Reasons = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Results:
    """The outcomes of all checks. A check that did not run is missing."""

    checks: Mapping[str, Sequence[Outcome]]

    def counts(self) -> dict[str, int]:
        result = {}
        for check, outcomes in self.checks.items():
            result[f"{check}_total"] = len(outcomes)
            result[f"{check}_passed"] = sum(outcome.passed for outcome in outcomes)
        return result


def blocks(results: Results, checkout: Checkout, reasons: Reasons) -> dict[str, str]:
    """Return the blocks; without the comparison of compilers if it did not run, so that its last result remains."""
    counts = results.counts()
    rows = [
        ("programs that compile, for each Tofino", str(counts["compile_passed"]), str(counts["compile_total"])),
        ("PTF tests that pass", str(counts["ptf_passed"]), str(counts["ptf_total"])),
    ]
    head = f"With open-p4studio {checkout.version()}:"
    table = per_program(results, checkout.programs(), checkout.suites())
    measured = [head, report.table(("check", "passed", "of"), rows), table, *exceptions(results, ("compile", "ptf"), reasons)]
    found = {"tna": "\n\n".join(measured)}
    if "p4info" in results.checks:
        rows = [
            (f"equal {what}", str(counts[f"{check}_passed"]), str(counts[f"{check}_total"]))
            for what, check in (("P4Info", "p4info"), ("schemas of BfRuntime", "schema"))
        ]
        compared = [report.table(("check", "passed", "of"), rows), *exceptions(results, ("p4info", "schema"), reasons)]
        found["tna-compiler"] = "\n\n".join(compared)
    return found


def per_program(results: Results, programs: Sequence[Program], suites: Sequence[Suite]) -> str:
    """Return a table with a row for each program and each other folder of tests."""
    compiled = {outcome.name: outcome.passed for outcome in results.checks["compile"]}
    passed = {outcome.name: outcome.passed for outcome in results.checks["ptf"]}
    tested = {suite.program.name if suite.program else suite.name: suite for suite in suites}

    def compiles(name: str, chip: str) -> str:
        return {True: "yes", False: "no", None: "-"}[compiled.get(f"{name}/{chip}")]

    def tests(suite: Suite | None) -> str:
        outcomes = [passed[f"{suite.name}/{test}"] for test in suite.tests] if suite else []
        return f"{sum(outcomes)} of {len(outcomes)}" if outcomes else "-"

    names = sorted({program.name for program in programs} | set(tested))
    rows = [(f"`{name}`", *(compiles(name, chip.name) for chip in CHIPS), tests(tested.get(name))) for name in names]
    head = ("program or folder of tests", *(f"compiles for {chip.title}" for chip in CHIPS), "PTF tests that pass")
    return report.table(head, rows)


def exceptions(results: Results, checks: Sequence[str], reasons: Reasons) -> list[str]:
    parts = []
    for check in checks:
        failed = [outcome for outcome in results.checks[check] if not outcome.passed]
        if failed:
            title, column = TITLES[check]
            parts.append(f"{title}:\n\n{report.by_reason(column, failed, reasons.get(check, {}))}")
    return parts
