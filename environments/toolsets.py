# SPDX-License-Identifier: Apache-2.0
"""The programs that the environments find on PATH: softswitch under the names of p4c and BMv2, or p4c and BMv2 themselves."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "environments"
PYTHON = BUILD / "venv" / "bin"
"""The Python packages that the environments need; `make environments` installs them from requirements.lock."""

NAMES = {
    "simple_switch": "softswitch",
    "simple_switch_grpc": "softswitch",
    "p4c": "softswitch-p4c",
    "p4c-bm2-ss": "softswitch-p4c",
}
"""Names of BMv2 and p4c, and the program of softswitch that replaces each."""


class ToolError(Exception):
    """A missing program, and how to get it."""


@dataclass(frozen=True)
class Toolset:
    """Programs under test."""

    key: str
    """Name in the results and of the folder of logs."""
    title: str
    path: tuple[Path, ...]
    """Folders that precede those of PATH."""


def softswitch() -> Toolset:
    """Return softswitch's programs, behind symbolic links with the names of BMv2 and p4c."""
    links = BUILD / "bin"
    links.mkdir(parents=True, exist_ok=True)
    for name, program in NAMES.items():
        variable = program.upper().replace("-", "_")
        target = Path(os.environ.get(variable) or ROOT / "target" / "release" / program).resolve()
        if not target.is_file():
            raise ToolError(f"missing {target}: build it with `make setup`, or set {variable} to its path")
        (links / name).unlink(missing_ok=True)
        (links / name).symlink_to(target)
    return Toolset("softswitch", "softswitch", (links,))


def peers() -> Toolset | None:
    """Return p4c and BMv2, if P4C_BM2 and BMV2 are the paths of p4c-bm2-ss and simple_switch_grpc; None if neither is set.

    The folders of both precede PATH, so their other programs (p4c, simple_switch_CLI) belong there, too.
    """
    folders = []
    for variable, name in (("P4C_BM2", "p4c-bm2-ss"), ("BMV2", "simple_switch_grpc")):
        given = os.environ.get(variable)
        if not given:
            continue
        program = Path(given).absolute()
        if program.name != name or shutil.which(program) is None:
            raise ToolError(f"{variable}={given}: not a program with the name {name}: correct or unset it")
        folders.append(program.parent)
    if len(folders) == 1:
        raise ToolError("only one of P4C_BM2 and BMV2 is set: set both, or unset it")
    return Toolset("bmv2", "p4c and BMv2", tuple(folders)) if folders else None
