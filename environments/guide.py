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


LONG = {"lpmtester", "lpmtester/lpmwidth20bits"}
"""Demos that send packets for thousands of random prefixes."""


def demo(script: str, up: str, timeout: float, stage: Stage) -> None:
    """Create the interfaces as the READMEs say, and run a script."""
    stage.run(f"{up}/bin/veth_setup.sh")
    if failures := ptf_failures(stage.run(f"./{script}", timeout=timeout)):
        raise RowError("; ".join(failures))


def _row(folder: str, script: str, name: str) -> Row:
    up = "/".join([".."] * len(folder.split("/")))
    timeout = 3600 if folder in LONG else 600
    play = partial(demo, script, up, timeout - 60)
    return Row(f"p4-guide/{name}", (folder, "testlib", "bin"), f"`{script}`: all PTF tests pass", play, timeout)


ROWS = [
    *(_row(folder, "runptf.sh", folder) for folder in DEMOS),
    *(_row("initial-table-entries", f"{program}-runptf.sh", f"initial-table-entries/{program}") for program in ENTRIES),
]
