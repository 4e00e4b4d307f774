# SPDX-License-Identifier: Apache-2.0
"""Folders of the repository."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
BUILD = REPOSITORY / "build"
RUNS = BUILD / "experiments"
"""Folder of results: one folder per scenario, with one subfolder per run."""
