"""Measures QuicSocks on the paper's LTE figures, and prints what came of it beside the model and the published figures.

Example: python -m frontage_demo.quicsocks --handshakes 30 --docs docs
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
from .model import LTE
from .world import Programs, world

ROOT = Path(__file__).resolve().parents[4]


def _count(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 10_000:
        raise argparse.ArgumentTypeError("1 to 10000")
    return number


def main() -> int:
    """Run the world with the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--handshakes", type=_count, default=30, help="of each kind (30)")
    parser.add_argument("--programs", type=Path, default=ROOT / "target" / "release", help="where our programs are")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "quicsocks", help="where result.json goes")
    parser.add_argument("--docs", type=Path, help="write results/quicsocks.md below this folder, too")
    args = parser.parse_args()
    try:
        programs = Programs.of(args.programs.resolve())
        return sandbox.run(lambda box: _run(box, programs, args), args.output.resolve())
    except (NodeError, sandbox.SandboxError) as error:
        print(f"frontage quicsocks: {error}", file=sys.stderr)
        return 2


def _run(box: sandbox.Sandbox, programs: Programs, args: argparse.Namespace) -> int:
    try:
        with world(programs, box.scratch) as here:
            result = measure(here, args.handshakes)
    except NodeError as error:
        print(f"frontage quicsocks: {error}", file=sys.stderr)
        box.keep_logs(args.output / "logs")
        print(f"frontage quicsocks: logs are in {args.output / 'logs'}", file=sys.stderr)
        return 1
    print("Table I of the paper, the analytical model:\n")
    print(page.symbolic())
    print("Table II, with the LTE figures:\n")
    print(page.numbers(LTE))
    print("Measured:\n")
    print(page.measured(result))
    print(page.saving(result))
    (args.output / "result.json").write_text(json.dumps(result.as_json(), indent=2) + "\n")
    if args.docs:
        print(page.write(result, args.docs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
