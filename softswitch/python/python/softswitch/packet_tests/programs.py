# SPDX-License-Identifier: Apache-2.0
"""Find compilers and switches, and compile P4 programs."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from .errors import RunError


def find_program(name: str, fix: str) -> str:
    """Return the absolute path of a program: of a path, or of a name next to Python (where pip installs) or on PATH.

    `fix` says how to get it, for the error message.
    """
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        raise RunError(f"{name}: program not found: {fix}")
    return str(Path(found).resolve())


@dataclass(frozen=True)
class Artifacts:
    """A compiled program: the absolute paths of its BMv2 JSON and of its P4Info in text format."""

    json: Path
    p4info: Path


@dataclass(frozen=True)
class Compiler:
    """A compiler with the options of p4c-bm2-ss: `softswitch-p4c` or `p4c-bm2-ss`, as a name or a path."""

    program: str
    options: tuple[str, ...] = ()

    def compile(self, source: Path, folder: Path) -> Artifacts:
        """Compile `source` to NAME.json and NAME.p4info.txtpb in `folder`. The compiler prints its errors itself."""
        program = find_program(self.program, "install it, or name another one with --compiler")
        stem = folder.resolve() / source.stem
        artifacts = Artifacts(Path(f"{stem}.json"), Path(f"{stem}.p4info.txtpb"))
        command = [program, *self.options, str(source), "-o", str(artifacts.json), "--p4runtime-files", str(artifacts.p4info)]
        if subprocess.run(command, check=False).returncode != 0:
            raise RunError(f"{source}: the program does not compile: correct the errors above")
        return artifacts
