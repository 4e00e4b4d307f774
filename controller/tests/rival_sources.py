# SPDX-License-Identifier: Apache-2.0
"""The sources of the P4 program with the file of a rival (experiments/rivals/p4)."""

import shutil
from pathlib import Path

from conftest import ROOT


def rival_sources(name: str, folder: Path) -> Path:
    """Write the sources to a new folder below ``folder``, and return it."""
    sources = folder / "p4src"
    shutil.copytree(ROOT / "p4src", sources)
    shutil.copytree(ROOT / "experiments" / "rivals" / "p4" / name, sources, dirs_exist_ok=True)
    return sources
