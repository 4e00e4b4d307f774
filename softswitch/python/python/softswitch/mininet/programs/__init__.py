# SPDX-License-Identifier: Apache-2.0
"""Programs: the executables of softswitch, and P4 programs in the form that the switch loads."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import softswitch

HERE = Path(__file__).parent
BY_ADDRESS = HERE / "by_address.p4"
"""Forwards each frame to the port that the last byte of its destination address names."""
WIRE = HERE / "wire.p4"
"""Connects ports 1 and 2."""


class ProgramError(RuntimeError):
    """A missing executable or P4 program."""


def executable(name: str = "softswitch") -> str:
    """Return the path of an executable: from the environment variable SOFTSWITCH, beside Python, or from PATH.

    Raises ProgramError if it is missing.
    """
    given = os.environ.get("SOFTSWITCH")
    beside = str(Path(sys.executable).with_name(name))
    found = shutil.which(given) if given else shutil.which(beside) or shutil.which(name)
    if found is None:
        raise ProgramError(f"{given or name}: no such program: install softswitch, or set SOFTSWITCH to its path")
    return found


def compiled(program: str | Path, folder: Path) -> Path:
    """Return the BMv2 JSON of a program: the file itself, or what the compiler makes from a P4 source, in `folder`.

    Beside the JSON of a P4 source, the folder receives its P4Info, STEM.p4info.txtpb. Raises ProgramError if the file is
    missing, and softswitch.CompileError if it does not compile.
    """
    source = Path(program)
    if not source.is_file():
        raise ProgramError(f"{source}: no such file: name a P4 program, or the JSON that a compiler made from it")
    if source.suffix != ".p4":
        return source
    made = softswitch.compile(source)
    json = folder / f"{source.stem}.json"
    json.write_text(made.json)
    if made.p4info is not None:
        (folder / f"{source.stem}.p4info.txtpb").write_text(made.p4info)
    return json
