# SPDX-License-Identifier: Apache-2.0
"""Where programs are, and where benchmarks write."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "bench"
P4 = Path(os.environ.get("ARTIFACTS", ROOT / "build" / "p4"))


def program(variable: str, name: str) -> Path:
    """One of the project's own programs: the one that this variable of the environment names, or the one of `make setup`."""
    path = Path(os.environ.get(variable, ROOT / "target" / "release" / name)).resolve()
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: `make setup` builds it, or set {variable} to where it is")
    return path
