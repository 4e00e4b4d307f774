# SPDX-License-Identifier: Apache-2.0
"""Measures QuicSocks with the paper's LTE figures, and prints the results beside the model and the published figures.

Example: python -m frontage_demo.quicsocks --handshakes 30 --docs docs
"""

from __future__ import annotations

import argparse
import json
import sys

from frontage_testbed.sandbox import Sandbox

from .. import command
from . import page
from .measure import measure
from .model import LTE
from .testbed import Programs, bring_up


def _count(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 10_000:
        raise argparse.ArgumentTypeError("must be from 1 to 10000")
    return number


def main() -> int:
    """Run the testbed with the arguments of the command line."""
    parser = command.parser("quicsocks", __doc__, "quicsocks", "result.json", "quicsocks.md")
    parser.add_argument("--handshakes", type=_count, default=30, help="number of each kind (30)")
    args = parser.parse_args()

    def find() -> Programs:
        return Programs.of(args.programs.resolve())

    return command.play("quicsocks", args.output, find, lambda box, programs: _run(box, programs, args))


def _run(box: Sandbox, programs: Programs, args: argparse.Namespace) -> int:
    with bring_up(programs, box.scratch) as testbed:
        result = measure(testbed, args.handshakes)
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
