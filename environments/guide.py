# SPDX-License-Identifier: Apache-2.0
"""The PTF demos of jafingerhut/p4-guide, by their own scripts."""

from __future__ import annotations

from functools import partial

from outputs import ptf_failures
from rows import Row, RowError
from stage import Stage

DEMOS = (
    "demo1",
    "demo1-bitselect-key",
    "demo2",
    "demo7",
    "lpmtester",
    "lpmtester/lpmwidth20bits",
    "ptf-tests/duplicatekeys",
    "ptf-tests/idletimeout",
    "ptf-tests/matchkinds",
    "ptf-tests/packetinout",
    "ptf-tests/registeraccess",
)
"""Folders with a script `runptf.sh` for v1model."""

ENTRIES = ("const-entries", "init-entries", "no-entries")
"""Programs of the folder `initial-table-entries`, each with its script."""


def demo(script: str, up: str, stage: Stage) -> None:
    """Create the interfaces as the READMEs say, and run a script."""
    stage.run(f"{up}/bin/veth_setup.sh")
    if failures := ptf_failures(stage.run(f"./{script}", timeout=400)):
        raise RowError("; ".join(failures))


def _row(folder: str, script: str, name: str) -> Row:
    up = "/".join([".."] * len(folder.split("/")))
    return Row(f"p4-guide/{name}", (folder, "testlib", "bin"), f"`{script}`: all PTF tests pass", partial(demo, script, up))


ROWS = [
    *(_row(folder, "runptf.sh", folder) for folder in DEMOS),
    *(_row("initial-table-entries", f"{program}-runptf.sh", f"initial-table-entries/{program}") for program in ENTRIES),
]
