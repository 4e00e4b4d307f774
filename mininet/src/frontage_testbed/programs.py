"""Finds the programs that a testbed runs: ours, which `make setup` builds, and Debian's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from .nodes import NodeError

REPOSITORY = Path(__file__).resolve().parents[3]


def ours(folder: Path, *names: str) -> tuple[Path, ...]:
    """Those of a folder, in this order. Raises NodeError for the first that is missing."""
    for name in names:
        if not (folder / name).is_file():
            raise NodeError(f"{folder / name} is missing: `make setup` builds it")
    return tuple(folder / name for name in names)


def missing_packages(packages: Mapping[str, str], env: Mapping[str, str] = os.environ) -> list[str]:
    """Debian packages whose programs are not here; `packages` by program."""
    # Name servers are where a search path that is not root's does not look.
    path = f"{env.get('PATH', os.defpath)}:/usr/sbin"
    return sorted({package for program, package in packages.items() if not shutil.which(program, path=path)})
