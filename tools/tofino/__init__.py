# SPDX-License-Identifier: Apache-2.0
"""Facts about the profiles for Tofino, in docs/tofino.md and in JSON files beside the profiles that show changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "p4src" / "tna"
STAGES = {"tofino1": 12, "tofino1quic": 12, "tofino2core": 20, "tofino2folded": 20, "tofino2full": 20, "tofino2": 20}
"""Stages of a gress of each profile's chip."""


def save(path: Path, facts: Any) -> None:
    """Write facts as JSON."""
    path.write_text(json.dumps(facts, indent=2) + "\n")
