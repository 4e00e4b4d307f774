# SPDX-License-Identifier: Apache-2.0
"""Measures delegation to real servers beside proxying, and writes the results beside the published ones.

Example: python -m frontage_demo.handoff --docs docs
With `--only latency`, for example, it measures and renews one section of the page.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from frontage_testbed.programs import REPOSITORY
from frontage_testbed.reporting.templates import PageTemplate
from frontage_testbed.sandbox import Sandbox

from .. import command
from . import connections, downloads, early, latency, page, rates, single_path
from .measure import SEED, measure
from .testbed import Ground, Programs
from .topology import Triangle


@dataclass(frozen=True)
class Section:
    """A section of the page that can be renewed alone."""

    sizes: list[int]
    """Sizes of the objects in bytes."""
    measure: Callable[[Ground, int], Any]
    """Measures with a seed."""
    text: Callable[[PageTemplate, Any], str]
    """Returns the section for a measurement."""


SECTIONS = {
    "early-data": Section([early.SIZE], early.measure, connections.section),
    "latency": Section([latency.ASKED, latency.BACKGROUND_SIZE], latency.measure, page.figure_10_section),
    "single-path": Section(
        [downloads.SMALL, single_path.SIZE, single_path.LOSSY_SIZE], single_path.measure, rates.single_path_section
    ),
}


def main() -> int:
    """Run the experiments with the arguments of the command line."""
    parser = command.parser("handoff", __doc__, "qdsr", "result.json", "qdsr.md")
    bench = REPOSITORY / "build" / "bench"
    parser.add_argument("--bench", type=Path, default=bench, help="results folder of `make bench ONLY=qdsr`")
    parser.add_argument("--only", choices=SECTIONS, help="measure and renew this section of the page only")
    args = parser.parse_args()

    def find() -> Programs:
        return Programs.of(args.programs.resolve())

    return command.play("qdsr", args.output, find, lambda box, programs: _run(box, programs, args))


def _run(box: Sandbox, programs: Programs, args: argparse.Namespace) -> int:
    if args.only:
        return _run_section(box, programs, args)
    result = measure(programs, box.scratch)
    (args.output / "result.json").write_text(json.dumps(result.as_json(), indent=2) + "\n")
    rows = page.bench_rows(args.bench / "result.json")
    print(page.page(result, rows))
    if args.docs:
        print(page.write(result, rows, args.docs))
    return 0


def _run_section(box: Sandbox, programs: Programs, args: argparse.Namespace) -> int:
    section = SECTIONS[args.only]
    ground = Ground(Triangle, programs, box.scratch, section.sizes)
    try:
        result = section.measure(ground, SEED)
    finally:
        ground.close()
    (args.output / f"{args.only}.json").write_text(json.dumps(result, indent=2, default=asdict) + "\n")
    text = section.text(PageTemplate("qdsr"), result)
    print(text)
    if args.docs:
        print(page.renew(text, args.docs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
