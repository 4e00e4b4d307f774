# SPDX-License-Identifier: Apache-2.0
"""Compiles modified P4: `frontage.p4`, with some of its source files replaced by a scenario's own."""

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

MAIN = Path("v1model/frontage.p4")


def build(variant: scenario.Program, file: Path, sources: Path, compiler: Path, cache: Path) -> Program:
    """Return the program of the scenario in ``file``, compiled from ``sources`` (p4src).

    The folder ``cache`` keeps it under a hash of all inputs. Raises ConfigError for a file that replaces none of the sources, and for P4
    that does not compile, with file and line.
    """
    overlay = file.parent / variant.overlay if variant.overlay else None
    replacements = _files(overlay) if overlay else {}
    originals = _files(sources)
    if overlay and not replacements:
        raise _error(file, f'"{overlay}" is not a folder with P4 files', "give one, relative to the scenario")
    for name in replacements.keys() - originals.keys():
        raise _error(file, f'"{overlay}/{name}" does not replace any file', f"give it the path of a file in {sources.name}")
    defines = [f"-D{name}={value}" for name, value in sorted(variant.define.items())]
    parts = [*(f"{name}\n{text}" for name, text in sorted((originals | replacements).items())), *defines, _hash(compiler)]
    folder = cache / hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache) as temporary:
            for name, text in (originals | replacements).items():
                path = Path(temporary, "p4", name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            out = Path(temporary, "out")
            out.mkdir()
            outputs: list[str | Path] = ["-o", out / "frontage.json", "--p4runtime-files", out / "frontage.p4info.txtpb"]
            completed = subprocess.run(
                [compiler, *defines, *outputs, MAIN], cwd=Path(temporary, "p4"), capture_output=True, text=True, check=False
            )
            if completed.returncode != 0:
                output = completed.stderr.strip().replace(f"{MAIN.parent}/../", "")
                raise _error(file, f"the P4 code does not compile:\n{output}\n", f"correct it in {overlay}")
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
