# SPDX-License-Identifier: Apache-2.0
"""Measures delegation to real servers beside proxying, and writes the results beside the published ones.

Example: python -m frontage_demo.handoff --docs docs
With `--only early-data`, it measures the first byte of new connections only, and renews their section of the page; with
`--only single-path`, downloads to clients with a single path.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from frontage_testbed.programs import REPOSITORY
from frontage_testbed.sandbox import Sandbox

from .. import command
from . import connections, downloads, early, page, rates, single_path
from .measure import SEED, measure
from .testbed import Ground, Programs
from .topology import Triangle


def main() -> int:
    """Run the experiments with the arguments of the command line."""
    parser = command.parser("handoff", __doc__, "qdsr", "result.json", "qdsr.md")
    bench = REPOSITORY / "build" / "bench"
    parser.add_argument("--bench", type=Path, default=bench, help="results folder of `make bench ONLY=qdsr`")
    parser.add_argument("--only", choices=["early-data", "single-path"], help="measure and renew this section of the page only")
    args = parser.parse_args()

    def find() -> Programs:
        return Programs.of(args.programs.resolve())

    return command.play("qdsr", args.output, find, lambda box, programs: _run(box, programs, args))


def _run(box: Sandbox, programs: Programs, args: argparse.Namespace) -> int:
    if args.only == "early-data":
        return _run_early_data(box, programs, args)
    if args.only == "single-path":
        return _run_single_path(box, programs, args)
    result = measure(programs, box.scratch)
    (args.output / "result.json").write_text(json.dumps(result.as_json(), indent=2) + "\n")
    rows = page.bench_rows(args.bench / "result.json")
    print(page.page(result, rows))
    if args.docs:
        print(page.write(result, rows, args.docs))
    return 0


def _run_early_data(box: Sandbox, programs: Programs, args: argparse.Namespace) -> int:
    ground = Ground(Triangle, programs, box.scratch, [early.SIZE])
    try:
        result = early.measure(ground, SEED)
    finally:
        ground.close()
    (args.output / "early-data.json").write_text(json.dumps(result, indent=2) + "\n")
    print(connections.first_bytes(result))
    if args.docs:
        print(page.renew_early_data(result, args.docs))
    return 0


def _run_single_path(box: Sandbox, programs: Programs, args: argparse.Namespace) -> int:
    ground = Ground(Triangle, programs, box.scratch, [downloads.SMALL, single_path.SIZE, single_path.LOSSY_SIZE])
    try:
        result = single_path.measure(ground, SEED)
    finally:
        ground.close()
    (args.output / "single-path.json").write_text(json.dumps(asdict(result), indent=2) + "\n")
    print(rates.single_path(result), rates.lossy(result), sep="\n\n")
    if args.docs:
        print(page.renew_single_path(result, args.docs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
