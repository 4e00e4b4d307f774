# SPDX-License-Identifier: Apache-2.0
"""Paths of programs, and of the folder for results."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "bench"
P4 = Path(os.environ.get("ARTIFACTS", ROOT / "build" / "p4"))


def program(variable: str, name: str) -> Path:
    """Return the path of a program of this project.

    The environment variable takes precedence over the program that `make setup` builds. Raises FileNotFoundError.
    """
    path = Path(os.environ.get(variable, ROOT / "target" / "release" / name)).resolve()
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: run `make setup`, or set {variable} to its path")
    return path
