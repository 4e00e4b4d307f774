# SPDX-License-Identifier: Apache-2.0
"""Measures mobile services with the delays of the Auspice paper, and prints the results beside the published figures.

Example: python -m frontage_demo.mobile --moves 100 --docs docs
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
from . import page
from .measure import measure_gaps, measure_setups, measure_throughput, round_trip, source
from .page import Result
from .testbed import Programs, bring_up
from .topology import CLIENT, MOBILE

SETUPS = 20
DOWNLOADS = 5


def main() -> int:
    """Run the testbed with the arguments of the command line."""
    parser = command.parser("mobile", __doc__, "mobile", "result.json", "mobile.md")
    parser.add_argument("--moves", type=command.count, default=100, help="number of moves of each kind (100)")
    parser.add_argument("--nats", type=Path, default=REPOSITORY / "build" / "nats-server", help="path of nats-server")
    parser.add_argument("--seed", type=int, default=1, help="seed of the intervals between moves (1)")
    args = parser.parse_args()

    def find() -> Programs:
        return Programs.of(args.programs.resolve(), args.nats.resolve())

    return command.play("mobile", args.output, find, lambda box, programs: _run(box, programs, args))


def _run(box: Sandbox, programs: Programs, args: argparse.Namespace) -> int:
    with bring_up(programs, box.scratch / "far", wires=True) as testbed:
        source(testbed)
        rtt = round_trip(testbed)
        setups = measure_setups(testbed, SETUPS)
        gaps = [measure_gaps(testbed, moving, args.moves, args.seed) for moving in ((MOBILE,), (CLIENT,), (MOBILE, CLIENT))]
    near = box.part("near")
    with bring_up(programs, near.scratch / "near", wires=False) as testbed:
        throughput = measure_throughput(testbed, DOWNLOADS)
    result = Result(rtt, setups, gaps, throughput)
    print(page.gaps_table(result))
    print(page.throughput_table(result))
    (args.output / "result.json").write_text(json.dumps(asdict(result), indent=2) + "\n")
    if args.docs:
        print(page.write(result, args.docs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
