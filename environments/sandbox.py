# SPDX-License-Identifier: Apache-2.0
"""Runs each row in namespaces of its own, so that scripts which bind fixed ports or end programs by name affect only that row."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rows import Row
from toolsets import BUILD, PYTHON, ToolError, Toolset


@dataclass(frozen=True)
class Checkout:
    """A checkout of an environment."""

    folder: Path
    modules: tuple[str, ...] = ()
    """Folders of Python modules for its scripts."""


@dataclass(frozen=True)
class Outcome:
    passed: bool
    reason: str
    """Why the row did not pass; empty if it did."""
    seconds: float


def check_visible(toolsets: Iterable[Toolset], checkouts: Iterable[Checkout]) -> None:
    """Raise ToolError if a row would not see a file that it needs, because it has a /tmp of its own."""
    programs = [program.resolve() for toolset in toolsets for folder in toolset.path for program in folder.iterdir()]
    modules = [Path(folder) for checkout in checkouts for folder in checkout.modules]
    for path in (BUILD, *programs, *modules):
        if Path("/tmp") in path.resolve().parents:
            raise ToolError(f"{path}: rows do not see /tmp: move it elsewhere")


def play(row: Row, checkout: Checkout, toolset: Toolset) -> Outcome:
    """Run a row in a copy of its part of the checkout."""
    base = BUILD / "rows" / toolset.key / row.name
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir(parents=True)
    for part in row.parts:
        _copy(checkout.folder / part, base / "checkout" / part)
    result = base / "result.json"
    start = time.monotonic()
    _unshared(row, base / "checkout" / row.parts[0], result, toolset, checkout.modules)
    seconds = time.monotonic() - start
    if not result.exists():
        reason = (
            f"stopped after {row.timeout:.0f} s"
            if seconds >= row.timeout
            else "the runner failed: see runner.txt beside output.txt"
        )
        return Outcome(False, reason, seconds)
    found = json.loads(result.read_text())
    return Outcome(found["passed"], found["reason"], seconds)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def _unshared(row: Row, folder: Path, result: Path, toolset: Toolset, modules: tuple[str, ...]) -> None:
    """Run `inside` in new namespaces of processes, networks, mounts and IPC; end all its processes."""
    path = os.pathsep.join([*map(str, toolset.path), str(PYTHON), os.environ.get("PATH", os.defpath)])
    inside = [sys.executable, str(Path(__file__).with_name("inside.py")), row.name, str(folder), str(result)]
    unshare = ["unshare", "--fork", "--kill-child", "--pid", "--mount-proc", "--net", "--mount", "--ipc"]
    with (result.parent / "runner.txt").open("wb") as log:
        process = subprocess.Popen(
            [*unshare, *inside],
            env=os.environ | {"PATH": path} | ({"PYTHONPATH": os.pathsep.join(modules)} if modules else {}),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            process.wait(row.timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
