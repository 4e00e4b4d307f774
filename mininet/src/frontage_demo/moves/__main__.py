# SPDX-License-Identifier: Apache-2.0
"""Measures how fast clients leave an address of their server, and how many requests fail.

Example: python -m frontage_demo.moves --docs docs
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from frontage_testbed.datacentre.deployment import Deployment
from frontage_testbed.datacentre.services import FILMS
from frontage_testbed.programs import REPOSITORY
from frontage_testbed.sandbox import Sandbox

from .. import command
from . import page
from .measure import SETTINGS, SIZE, measure
from .testbed import MovingTestbed


def main() -> int:
    """Measure with the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="frontage_demo.moves", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=REPOSITORY / "build" / "moves", help="folder for result.json")
    parser.add_argument("--docs", type=Path, help="also write the results into moves.md below this folder")
    args = parser.parse_args()
    return command.play("moves", args.output, lambda: command.deployment(SETTINGS), lambda box, parts: _run(box, parts, args))


def _run(box: Sandbox, parts: Deployment, args: argparse.Namespace) -> int:
    edge = parts.edge(SETTINGS, box, services=FILMS)
    with MovingTestbed(SETTINGS, box.scratch, edge, parts.quic_agent, parts.h3_client) as testbed:
        testbed.offer_objects([SIZE])
        testbed.wait_until_ready()
        moves = measure(testbed)
    (args.output / "result.json").write_text(json.dumps(asdict(moves)))
    text = page.markdown(moves)
    print(text)
    if args.docs:
        page.plot(moves, args.docs)
        page.write(text, args.docs / "moves.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
