# SPDX-License-Identifier: Apache-2.0
"""Injects failures into a JetStream supercluster under load, and checks the consistency of what clients observed.

Example: python -m frontage_demo.supercluster --rate 300 --seed 2 --docs docs
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

from frontage_records.errors import RecordError
from frontage_testbed.nodes import NodeError
from frontage_testbed.programs import REPOSITORY
from frontage_testbed.sandbox import Sandbox

from .. import command
from . import page
from .plan import Plan, StormError
from .storm import Storm
from .testbed import Programs, bring_up


def main() -> int:
    """Run the scenario with the arguments of the command line."""
    parser = command.parser("supercluster", __doc__, "supercluster", "histories", "auspice-supercluster.md")
    parser.add_argument("--rate", type=float, default=1340, help="operations per second, a quarter of them reads (1340)")
    parser.add_argument("--hold", type=float, default=8, help="duration of each failure in seconds (8)")
    parser.add_argument("--records", type=int, default=20, help="number for each consistency and home site (20)")
    parser.add_argument("--seed", type=int, default=1)
    nats = os.environ.get("NATS_SERVER") or REPOSITORY / "build" / "nats-server"
    parser.add_argument("--nats-server", type=Path, default=nats)
    args = parser.parse_args()
    if args.rate <= 0 or args.hold <= 0 or args.records < 1:
        parser.error("--rate, --hold and --records must be more than 0")

    def find() -> Programs:
        return Programs.of(args.programs.resolve(), Path(args.nats_server).resolve())

    return command.play("records", args.output, find, lambda box, programs: _run(box, programs, args))


def _run(box: Sandbox, programs: Programs, args: argparse.Namespace) -> int:
    plan = Plan(args.rate, args.hold, args.records, args.seed)
    try:
        with bring_up(programs, box.scratch, args.seed) as testbed:
            result = asyncio.run(Storm(testbed.servers, testbed.regions, box.scratch, plan, testbed.cut).run())
    except (NodeError, StormError, RecordError, TimeoutError) as error:
        raise NodeError(f"{error!r}; seed {args.seed}") from error
    (args.output / "history.jsonl").write_text("".join(operation.line() + "\n" for operation in result.operations))
    print(page.page(result, plan))
    if args.docs:
        print(page.write(result, plan, args.docs))
    if result.violations:
        command.keep_logs("records", box, args.output)
        print(f"frontage records: {len(result.violations)} violations; seed {args.seed}", file=sys.stderr)
    return 1 if result.violations else 0


if __name__ == "__main__":
    sys.exit(main())
