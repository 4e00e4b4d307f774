# SPDX-License-Identifier: Apache-2.0
"""Measures how fast health checks detect faults of servers, and how many requests of clients fail until then.

Example: python -m frontage_demo.detection --rounds 50 --docs docs
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from frontage_testbed.datacentre.deployment import Deployment
from frontage_testbed.programs import REPOSITORY
from frontage_testbed.sandbox import Sandbox

from .. import command
from . import table
from .measure import SETTINGS, measure


def main() -> int:
    """Measure with the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="frontage_demo.detection", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=REPOSITORY / "build" / "detection", help="folder for result.json")
    parser.add_argument("--rounds", type=int, default=50, help="repetitions of each fault")
    parser.add_argument("--docs", type=Path, help="also write the table into health.md below this folder")
    args = parser.parse_args()
    return command.play("detection", args.output, lambda: command.deployment(SETTINGS), lambda box, parts: _run(box, parts, args))


def _run(box: Sandbox, parts: Deployment, args: argparse.Namespace) -> int:
    found = measure(parts, box, args.rounds)
    (args.output / "result.json").write_text(json.dumps({name: [one._asdict() for one in ones] for name, ones in found.items()}))
    text = table.markdown(found)
    print(text)
    if args.docs:
        table.write(text, args.docs / "health.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
