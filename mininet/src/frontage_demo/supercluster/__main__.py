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
from .following import Following, FollowPlan
from .partitions import Partitions
from .plan import Plan, StormError
from .results import Results
from .storm import Storm
from .testbed import Programs, Testbed, bring_up

PARTS = ("storm", "following", "partitions")


def main() -> int:
    """Run the scenario with the arguments of the command line."""
    parser = command.parser("supercluster", __doc__, "supercluster", "histories", "auspice-supercluster.md")
    parser.add_argument("--rate", type=float, default=1340, help="operations per second, a quarter of them reads (1340)")
    parser.add_argument("--hold", type=float, default=8, help="duration of each failure in seconds (8)")
    parser.add_argument("--records", type=int, default=20, help="number for each consistency and home site (20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--follow-rate", type=float, default=240, help="requests per second while demand moves (240)")
    parser.add_argument("--epoch", type=float, default=20, help="length of a placement epoch in seconds (20)")
    parser.add_argument("--partitions", type=int, default=100, help="number of seeded histories of writes during partitions (100)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="parts to run; all are needed for the page")
    nats = os.environ.get("NATS_SERVER") or REPOSITORY / "build" / "nats-server"
    parser.add_argument("--nats-server", type=Path, default=nats)
    args = parser.parse_args()
    if set(args.parts) != set(PARTS) and args.docs:
        parser.error("--docs needs all parts")
    if args.rate <= 0 or args.hold <= 0 or args.records < 1:
        parser.error("--rate, --hold and --records must be more than 0")

    def find() -> Programs:
        return Programs.of(args.programs.resolve(), Path(args.nats_server).resolve())

    return command.play("records", args.output, find, lambda box, programs: _run(box, programs, args))


def _run(box: Sandbox, programs: Programs, args: argparse.Namespace) -> int:
    plan = Plan(args.rate, args.hold, args.records, args.seed)
    follow = FollowPlan(args.follow_rate, args.epoch, seed=args.seed)
    try:
        with bring_up(programs, box.scratch, args.seed) as testbed:
            results = asyncio.run(_play(testbed, box.scratch, plan, follow, args))
    except (NodeError, StormError, RecordError, TimeoutError) as error:
        raise NodeError(f"{error!r}; seed {args.seed}") from error
    if results.storm is not None:
        (args.output / "history.jsonl").write_text("".join(operation.line() + "\n" for operation in results.storm.operations))
    if results.following is not None:
        (args.output / "requests.jsonl").write_text("".join(request.line() + "\n" for request in results.following.requests))
    print(page.page(results, plan, follow))
    if args.docs:
        print(page.write(results, plan, follow, args.docs))
    if results.violations:
        command.keep_logs("records", box, args.output)
        print(f"frontage records: {len(results.violations)} violations; seed {args.seed}", file=sys.stderr)
    return 1 if results.violations else 0


async def _play(testbed: Testbed, folder: Path, plan: Plan, follow: FollowPlan, args: argparse.Namespace) -> Results:
    results = Results()
    if "storm" in args.parts:
        results.storm = await Storm(testbed.servers, testbed.regions, folder, plan, testbed.cut).run()
    else:
        testbed.servers.start_all()
        await testbed.servers.ready()
    if "following" in args.parts:
        results.following = await Following(testbed.servers, testbed.regions, folder, follow, testbed.cut).run()
    if "partitions" in args.parts:
        sites = [region.site for region in testbed.regions]
        seeds = range(args.seed, args.seed + args.partitions)
        results.partitions = await Partitions(testbed.servers, sites, testbed.cut).run(seeds)
    return results


if __name__ == "__main__":
    sys.exit(main())
