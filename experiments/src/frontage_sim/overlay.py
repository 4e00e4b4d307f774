# SPDX-License-Identifier: Apache-2.0
"""Compiles modified P4: `frontage.p4` with a scenario's own files in place of some of its sources."""

from __future__ import annotations

import hashlib
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from frontage.config import ConfigError
from frontage.config.document import Problem
from frontage_sim import scenario
from frontage_sim.switches import Program

TOP = Path("v1model/frontage.p4")


def build(wanted: scenario.Program, file: Path, sources: Path, compiler: Path, cached: Path) -> Program:
    """Return the program of the scenario in ``file``, compiled from ``sources`` (p4src).

    ``cached`` keeps it under a hash of all its inputs. Raises ConfigError for a file that replaces nothing, and for P4 that does not
    compile, with file and line."""
    overlay = file.parent / wanted.overlay if wanted.overlay else None
    own = _files(overlay) if overlay else {}
    whole = _files(sources)
    if overlay and not own:
        raise _error(file, f"{overlay}: no folder with P4 files", "give one, relative to the scenario")
    for name in own.keys() - whole.keys():
        raise _error(file, f"{overlay}/{name} replaces no file", f"give it the path of a file below {sources.name}")
    defines = [f"-D{name}={value}" for name, value in sorted(wanted.define.items())]
    parts = [*(f"{name}\n{text}" for name, text in sorted((whole | own).items())), *defines, _hash(compiler)]
    folder = cached / hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    if not folder.exists():
        cached.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cached) as made:
            for name, text in (whole | own).items():
                path = Path(made, "p4", name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            out = Path(made, "out")
            out.mkdir()
            outputs: list[str | Path] = ["-o", out / "frontage.json", "--p4runtime-files", out / "frontage.p4info.txtpb"]
            done = subprocess.run(
                [compiler, *defines, *outputs, TOP], cwd=Path(made, "p4"), capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                output = done.stderr.strip().replace(f"{TOP.parent}/../", "")
                raise _error(file, f"the P4 does not compile:\n{output}\n", f"correct it in {overlay}")
            out.rename(folder)  # atomic
    return Program(folder / "frontage.p4info.txtpb", folder / "frontage.json")


def _files(folder: Path) -> dict[str, str]:
    """Return the text of every P4 file below a folder, by its relative path."""
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.p4")}


@cache
def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _error(file: Path, what: str, fix: str) -> ConfigError:
    return ConfigError(file, [Problem(("program", "overlay"), what, fix)])
