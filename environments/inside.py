# SPDX-License-Identifier: Apache-2.0
"""Runs one row in the namespaces that `sandbox` created, and writes the outcome as JSON. Not for direct use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from catalogue import ROWS
from rows import RowError
from stage import Stage

SUDOERS = "root ALL=(ALL:ALL) NOPASSWD: ALL\n"
"""Rules for sudo: without `secure_path`, it searches PATH, where the programs under test are."""


def prepare() -> None:
    """Give this row its own /tmp and sudo configuration, and a loopback interface."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/tmp"], check=True)
    rules = Path("/tmp/.sudoers")
    rules.write_text(SUDOERS)
    rules.chmod(0o440)
    if Path("/etc/sudoers").exists():
        subprocess.run(["mount", "--bind", str(rules), "/etc/sudoers"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def main(name: str, folder: str, result: str) -> None:
    row = next(row for row in ROWS if row.name == name)
    prepare()
    reason = ""
    with (Path(result).parent / "output.txt").open("wb") as log:
        try:
            row.play(Stage(Path(folder), log))
        except RowError as failed:
            reason = str(failed)
        log.write(f"{reason or 'passed'}\n".encode())
    Path(result).write_text(json.dumps({"passed": not reason, "reason": reason}))


if __name__ == "__main__":
    main(*sys.argv[1:])
