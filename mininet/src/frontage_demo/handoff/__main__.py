"""Measures the hand-off to real servers beside the proxy form, and writes what came of it beside the published figures.

Example: python -m frontage_demo.handoff --docs docs
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .. import sandbox
from ..nodes import NodeError
from . import page
from .measure import measure
from .world import Programs

ROOT = Path(__file__).resolve().parents[4]


def main() -> int:
    """Run the worlds with the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, default=ROOT / "target" / "release", help="where our programs are")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "qdsr", help="where result.json goes")
    parser.add_argument(
        "--bench", type=Path, default=ROOT / "build" / "bench", help="where `make bench ONLY=qdsr` wrote"
    )
    parser.add_argument("--docs", type=Path, help="write results/qdsr.md below this folder, too")
    args = parser.parse_args()
    try:
        programs = Programs.of(args.programs.resolve())
        return sandbox.run(lambda box: _run(box, programs, args), args.output.resolve())
    except (NodeError, sandbox.SandboxError) as error:
        print(f"frontage qdsr: {error}", file=sys.stderr)
        return 2


def _run(box: sandbox.Sandbox, programs: Programs, args: argparse.Namespace) -> int:
    try:
        result = measure(programs, box.scratch)
    except NodeError as error:
        print(f"frontage qdsr: {error}", file=sys.stderr)
        box.keep_logs(args.output / "logs")
        print(f"frontage qdsr: logs are in {args.output / 'logs'}", file=sys.stderr)
        return 1
    (args.output / "result.json").write_text(json.dumps(result.as_json(), indent=2) + "\n")
    rows = page.bench_rows(args.bench / "result.json")
    print(page.page(result, rows))
    if args.docs:
        print(page.write(result, rows, args.docs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
