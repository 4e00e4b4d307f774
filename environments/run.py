# SPDX-License-Identifier: Apache-2.0
"""Runs the exercises of the P4 community's environments on softswitch, and writes docs/environments.md from the results.

Only PATH changes: softswitch and softswitch-p4c precede other programs under the names simple_switch, simple_switch_grpc,
p4c and p4c-bm2-ss. With P4C_BM2 and BMV2, the same exercises also run on p4c and BMv2. Each row runs in its own namespaces
and has an explicit check. Results are in build/environments.

Fails if a row fails on softswitch that passes on p4c and BMv2, or that has not run there.

Example: TUTORIALS=../tutorials environments/run.py --only tutorials/basic
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import page
from catalogue import ENVIRONMENTS, ROWS
from results import Results
from rows import Row, select
from sandbox import Checkout, check_visible, play
from toolsets import BUILD, ToolError, Toolset, peers, softswitch


def checkouts() -> dict[str, Checkout]:
    """Return the checkouts that are named in the environment variables, by environment.

    Raises ToolError if one does not exist, or lacks the modules that its scripts import.
    """
    found = {}
    for environment in ENVIRONMENTS:
        given = os.environ.get(environment.variable)
        if given:
            folder = Path(given).resolve()
            if not folder.is_dir():
                raise ToolError(f"{environment.variable}={given}: not a folder: name a checkout of {environment.repository}")
            missing = [variable for variable in environment.modules if not os.environ.get(variable)]
            if missing:
                raise ToolError(f"{environment.variable} is set, but not {missing[0]}: see environments/README.md")
            found[environment.key] = Checkout(folder, tuple(os.environ[variable] for variable in environment.modules))
    if not found:
        raise ToolError(f"no checkout is named: set {', '.join(e.variable for e in ENVIRONMENTS)}, or some of them")
    return found


def run(rows: Sequence[Row], folders: dict[str, Checkout], toolsets: Sequence[Toolset], results: Results) -> None:
    """Run the rows whose checkout is present, and record the outcomes."""
    for number, row in enumerate(rows, 1):
        if row.environment not in folders:
            continue
        for toolset in toolsets:
            print(f"[{number}/{len(rows)}] {row.name} on {toolset.title}: ", end="", flush=True)
            outcome = play(row, folders[row.environment], toolset)
            results.record(row.name, toolset.key, outcome)
            print(f"{'passes' if outcome.passed else 'fails: ' + outcome.reason} ({outcome.seconds:.0f} s)", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="ROW", help="run this row, or those below it, and keep the results of the others")
    parser.add_argument(
        "--on", choices=("softswitch", "bmv2"), help="run on these programs only, and keep the results of the others"
    )
    parser.add_argument("--list", action="store_true", help="list the rows with their checks")
    options = parser.parse_args()
    if options.list:
        print("\n".join(f"{row.name}: {row.check}" for row in ROWS))
        return 0
    try:
        rows = select(ROWS, options.only)
        folders = checkouts()
        toolsets = [toolset for toolset in (softswitch(), peers()) if toolset and options.on in (None, toolset.key)]
        check_visible(toolsets, folders.values())
        if os.geteuid() != 0:
            raise ToolError("network namespaces need root: run as root")
    except (ToolError, ValueError) as error:
        print(f"environments: {error}", file=sys.stderr)
        return 2
    results = Results.load(BUILD / "result.json")
    results.note_checkouts({key: checkout.folder for key, checkout in folders.items()})
    results.note_versions(toolsets)
    run(rows, folders, toolsets, results)
    page.write(results)
    failed = results.regressions([row.name for row in rows if row.environment in folders])
    for name in failed:
        print(f"environments: {name} fails: see {BUILD / 'rows' / 'softswitch' / name / 'output.txt'}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
