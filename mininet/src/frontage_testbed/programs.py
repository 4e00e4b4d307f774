# SPDX-License-Identifier: Apache-2.0
"""Finds the programs of a testbed: our own, which `make setup` builds, and Debian's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from .nodes import NodeError

REPOSITORY = Path(__file__).resolve().parents[3]


def ours(folder: Path, *names: str) -> tuple[Path, ...]:
    """Return the paths of our own programs in `folder`. Raises NodeError if one is missing."""
    for name in names:
        if not (folder / name).is_file():
            raise NodeError(f"{folder / name}: file not found: run `make setup`")
    return tuple(folder / name for name in names)


def missing_packages(packages: Mapping[str, str], env: Mapping[str, str] = os.environ) -> list[str]:
    """Return the Debian packages whose programs are missing; `packages` maps programs to packages."""
    # Debian installs name servers in a directory that is not on every user's search path.
    path = f"{env.get('PATH', os.defpath)}:/usr/sbin"
    return sorted({package for program, package in packages.items() if not shutil.which(program, path=path)})
