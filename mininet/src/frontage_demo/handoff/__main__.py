# SPDX-License-Identifier: Apache-2.0
"""Measures delegation to real servers beside proxying, and writes the results beside the published ones.

Example: python -m frontage_demo.handoff --docs docs
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from frontage_testbed.programs import REPOSITORY
from frontage_testbed.sandbox import Sandbox

from .. import command
from . import page
from .measure import measure
from .testbed import Programs


def main() -> int:
    """Run the experiments with the arguments of the command line."""
    parser = command.parser("handoff", __doc__, "qdsr", "result.json", "qdsr.md")
    bench = REPOSITORY / "build" / "bench"
    parser.add_argument("--bench", type=Path, default=bench, help="results folder of `make bench ONLY=qdsr`")
    args = parser.parse_args()

    def find() -> Programs:
        return Programs.of(args.programs.resolve())

    return command.play("qdsr", args.output, find, lambda box, programs: _run(box, programs, args))


def _run(box: Sandbox, programs: Programs, args: argparse.Namespace) -> int:
    result = measure(programs, box.scratch)
    (args.output / "result.json").write_text(json.dumps(result.as_json(), indent=2) + "\n")
    rows = page.bench_rows(args.bench / "result.json")
    print(page.page(result, rows))
    if args.docs:
        print(page.write(result, rows, args.docs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
