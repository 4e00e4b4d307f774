# SPDX-License-Identifier: Apache-2.0
"""Leads connections through all five systems, under load, with every fault, and beside a plain network.

Example: python -m frontage_demo.everything --seconds 600 --docs docs
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from frontage_testbed.datacentre.deployment import DeploymentError
from frontage_testbed.nodes import NodeError
from frontage_testbed.programs import REPOSITORY
from frontage_testbed.sandbox import Sandbox

from .. import command
from . import comparison, faults, load, results
from .parts import ALL, NETWORKS, NONE, Parts
from .programs import find
from .site import AllPrograms, CapturedSite
from .testbed import LOADED, EverythingTestbed, page_of
from .trace import follow

TRACED = "N. Virginia"
"""The client whose visit is traced: anycast leads it to the far site."""
T = TypeVar("T")


def _from(least: float) -> Callable[[str], float]:
    """Return the parser of a length in seconds that is at least this long."""

    def seconds(text: str) -> float:
        length = float(text)
        if not least <= length <= 3600:
            raise argparse.ArgumentTypeError(f"must be from {least:g} to 3600")
        return length

    return seconds


def main() -> int:
    """Run everything with the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="frontage_demo.everything", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=REPOSITORY / "build" / "frontage", help="folder for result.json")
    parser.add_argument("--docs", type=Path, help="also write results/frontage.md below this folder")
    parser.add_argument("--seconds", type=_from(60), default=120.0, help="length of each of the three loads (120)")
    parser.add_argument(
        "--ablation", type=_from(30), metavar="SECONDS", help="also load each network that uses a part of the systems for this time"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the visits, the pictures and the anycast routes (1)")
    args = parser.parse_args()

    try:
        programs = find()
        run = _run(programs, args)
    except (DeploymentError, NodeError) as error:
        print(f"frontage everything: {error}", file=sys.stderr)
        return 2
    (args.output / "result.json").write_text(json.dumps(asdict(run), indent=2, default=sorted) + "\n")
    print(results.compared(run.sides))
    if run.ablation:
        print(results.ablated(run.ablation))
    print(results.survived(run.faults))
    for failed in run.faults.unexplained:
        print(f"unexplained: {failed.client} at {failed.began:.1f} s: {failed.error}", file=sys.stderr)
    if args.docs:
        print(results.write(run, args.docs))
    return 1 if run.faults.unexplained else 0


def _run(programs: AllPrograms, args: argparse.Namespace) -> results.Run:
    page_bytes = sum(len(item.body) for item in page_of(args.seed))

    def measured(name: str, measure: Callable[[EverythingTestbed], T], **options: Any) -> T:
        """Return what `measure` returns for a new testbed, which runs in another process."""
        file = args.output.resolve() / f"{name}.pickle"

        def body(box: Sandbox) -> None:
            print(f"Bringing up the sites: {name}", flush=True)
            with EverythingTestbed(programs, box.scratch / "testbed", seed=args.seed, **options) as testbed:
                file.write_bytes(pickle.dumps(measure(testbed)))

        command.in_sandbox("everything", body, args.output.resolve())
        result: T = pickle.loads(file.read_bytes())
        return result

    def loaded(name: str, parts: Parts, seconds: float) -> comparison.Side:
        """Return the completion times in a network with these parts."""
        visits = load.plan(list(LOADED.clients), 0.0, seconds, args.seed)
        return measured(name, lambda testbed: comparison.side(load.run(testbed, visits)), scenario=LOADED, parts=parts)

    visit = measured("trace", lambda testbed: follow(testbed, TRACED), site_type=CapturedSite)
    sides = loaded("Frontage", ALL, args.seconds), loaded("plain", NONE, args.seconds)
    endured = measured(
        "faults", lambda testbed: faults.endure(testbed, args.seconds, args.seed), scenario=LOADED, placement=faults.PLACEMENT
    )
    ablation = {name: loaded(name, parts, args.ablation) for name, parts in NETWORKS.items()} if args.ablation else {}
    return results.Run(args.seconds, args.seed, page_bytes, visit, sides, endured, args.ablation or 0.0, ablation)


if __name__ == "__main__":
    sys.exit(main())
