"""Settings of the tests."""

from __future__ import annotations

from pathlib import Path

from hypothesis import settings

# Use the same examples in each run, and no deadlines, because machines may be slow.
settings.register_profile("frontage", deadline=None, derandomize=True)
settings.load_profile("frontage")

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "controller" / "examples" / "demo.yaml"
