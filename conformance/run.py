# SPDX-License-Identifier: Apache-2.0
"""Test the compiler and the switch with p4c's own samples, and give a reason for each failure.

Needs P4C, a checkout of github.com/p4lang/p4c, which need not be built. If P4C_BM2 (p4c-bm2-ss), P4C_PSA (p4c-bm2-psa)
and BMV2 (simple_switch_grpc) are set or on PATH, every STF test also runs with p4c's compilers and on BMv2. Writes counts to
build/conformance/result.json and updates docs/conformance.md. Fails if a sample fails without a reason in
explained.toml, or passes although it has one.

Examples:
  make conformance P4C=../p4c
  P4C=../p4c conformance/run.py --only issue1097-bmv2
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import explained
import report
from checks import Check, Checks, Finished
from corpus import Corpus, CorpusError
from explained import ExplainedError
from peers import Peers
from tools import ROOT, ToolError, own, own_compiler

BUILD = ROOT / "build" / "conformance"
WORKERS = 2


def run(checks: list[Check], corpus: Corpus, only: str | None, console: Console) -> list[Finished]:
    columns = (TextColumn("{task.description:<20}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    finished = []
    with Progress(*columns, console=console) as progress, ThreadPoolExecutor(WORKERS) as pool:
        for check in checks:
            samples = [sample for sample in check.samples(corpus) if only in (None, sample.name)]
            if not samples:
                continue
            outcomes = []
            for outcome in progress.track(pool.map(check.check, samples), total=len(samples), description=check.name):
                outcomes.append(outcome)
            finished.append(Finished(check, outcomes))
    return finished


def counts(finished: list[Finished]) -> dict[str, int]:
    result = {}
    for done in finished:
        result[done.check.total] = len(done.outcomes)
        result[done.check.passed] = len(done.outcomes) - len(done.failed())
    return result


def show(finished: list[Finished], console: Console) -> None:
    table = Table("check", box=SIMPLE_HEAD)
    for column in ("samples", "pass"):
        table.add_column(column, justify="right")
    for done in finished:
        table.add_row(done.check.name, str(len(done.outcomes)), str(len(done.outcomes) - len(done.failed())))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", help="run only this sample, in all checks that use it; does not write files")
    args = parser.parse_args()
    console = Console(stderr=True, highlight=False)
    try:
        sys.exit(measure(args.only, console))
    except (CorpusError, ToolError, ExplainedError) as error:
        sys.exit(f"conformance: {error}")


def measure(only: str | None, console: Console) -> int:
    corpus = Corpus.find(os.environ.get("P4C", ""))
    compiler = own_compiler(corpus.root / "p4include")
    (BUILD / "samples").mkdir(parents=True, exist_ok=True)
    (BUILD / "peers").mkdir(exist_ok=True)
    checks = Checks(compiler, own("SOFTSWITCH_STF", "softswitch-stf"), BUILD / "samples")
    peers = Peers.find(corpus, checks, BUILD / "peers")
    for message in peers.missing():
        console.print(message)
    reasons = explained.load()
    finished = run(checks.all() + peers.checks(), corpus, only, console)
    if not finished:
        raise CorpusError(f"unknown sample {only}: use a path below testdata/p4_16_samples, without .p4")
    show(finished, console)
    surprises = 0
    for done in finished:
        for line in done.surprises(reasons.get(done.check.name, {}), only):
            surprises += 1
            console.print(f"{done.check.name}: {line}", style="red", markup=False, soft_wrap=True)
    if only is None:
        BUILD.mkdir(parents=True, exist_ok=True)
        result = counts(finished)
        (BUILD / "result.json").write_text(json.dumps({**result, "unexplained": surprises, "p4c": corpus.version}, indent=2) + "\n")
        ours, theirs = finished[: len(checks.all())], finished[len(checks.all()) :]
        report.renew(report.conformance(corpus, ours, reasons, result) | peers.report(result, report.failures(theirs, reasons)))
        console.print(f"written: {_short(BUILD / 'result.json')} and {_short(report.PAGE)}")
    if surprises:
        console.print(f"{surprises} outcomes contradict conformance/explained.toml", style="red")
    return 1 if surprises else 0


def _short(path: Path) -> Path:
    return path.relative_to(ROOT)


if __name__ == "__main__":
    main()
