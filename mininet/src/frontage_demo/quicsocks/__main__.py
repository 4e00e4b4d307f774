# SPDX-License-Identifier: Apache-2.0
"""Measures QuicSocks with the paper's LTE figures, and prints the results beside the model and the published figures.

Example: python -m frontage_demo.quicsocks --handshakes 30 --docs docs
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from frontage_testbed.sandbox import Sandbox

from .. import command
from . import page
from .costs import measure_costs
from .masque import FOLDER, Masque
from .measure import measure
from .model import LTE
from .testbed import Programs, bring_up


def main() -> int:
    """Run the testbed with the arguments of the command line."""
    parser = command.parser("quicsocks", __doc__, "quicsocks", "result.json", "quicsocks.md")
    parser.add_argument("--handshakes", type=command.count, default=30, help="number of each kind (30)")
    args = parser.parse_args()

    def find() -> tuple[Programs, Masque]:
        return Programs.of(args.programs.resolve()), Masque.of(FOLDER)

    return command.play("quicsocks", args.output, find, lambda box, found: _run(box, *found, args))


def _run(box: Sandbox, programs: Programs, masque: Masque, args: argparse.Namespace) -> int:
    with bring_up(programs, box.scratch, masque) as testbed:
        result = measure(testbed, args.handshakes)
        costs = measure_costs(testbed, masque, args.handshakes)
    print("Table I of the paper, the analytical model:\n")
    print(page.symbolic())
    print("Table II, with the LTE figures:\n")
    print(page.numbers(LTE))
    print("Measured:\n")
    print(page.measured(result))
    print(page.saving(result))
    print("Beside MASQUE:\n")
    print(page.compared(costs))
    report = result.as_json() | {"costs": [asdict(cost) for cost in costs]}
    (args.output / "result.json").write_text(json.dumps(report, indent=2) + "\n")
    if args.docs:
        print(page.write(result, costs, args.docs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
