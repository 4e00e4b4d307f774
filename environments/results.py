# SPDX-License-Identifier: Apache-2.0
"""The outcomes of all rows, kept in a JSON file so that one row can run again."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox import Outcome
from toolsets import Toolset


@dataclass
class Results:
    path: Path
    rows: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    """Outcomes by row and toolset."""
    checkouts: dict[str, str] = field(default_factory=dict)
    """Commits of the checkouts by environment."""
    versions: dict[str, list[str]] = field(default_factory=dict)
    """Versions of the compiler and the switch by toolset."""

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read the results of earlier runs, if there are any."""
        return cls(path, **json.loads(path.read_text())) if path.exists() else cls(path)

    def record(self, row: str, toolset: str, outcome: Outcome) -> None:
        """Store an outcome, also in the file, which keeps what another run has written there."""
        if self.path.exists():
            self.rows = json.loads(self.path.read_text())["rows"]
        found = {"passed": outcome.passed, "reason": outcome.reason, "seconds": round(outcome.seconds)}
        self.rows.setdefault(row, {})[toolset] = found
        self.path.parent.mkdir(parents=True, exist_ok=True)
        content = {"rows": self.rows, "checkouts": self.checkouts, "versions": self.versions}
        self.path.write_text(json.dumps(content, indent=1) + "\n")

    def note_checkouts(self, folders: Mapping[str, Path]) -> None:
        """Note the commits of these checkouts."""
        for key, folder in folders.items():
            command = ["git", "-C", str(folder), "rev-parse", "--short=12", "HEAD"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.checkouts[key] = done.stdout.strip() or "of unknown commit"

    def note_versions(self, toolsets: Iterable[Toolset]) -> None:
        """Note the versions of these programs."""
        for toolset in toolsets:
            self.versions[toolset.key] = [_version(toolset, name) for name in ("p4c-bm2-ss", "simple_switch_grpc")]

    def regressions(self, names: Sequence[str]) -> list[str]:
        """Return those of the rows that fail on softswitch, but not on p4c and BMv2."""
        return [
            name
            for name in names
            if not self.rows.get(name, {}).get("softswitch", {"passed": True})["passed"]
            and self.rows[name].get("bmv2", {"passed": True})["passed"]
        ]


def _version(toolset: Toolset, name: str) -> str:
    program = next((folder / name for folder in toolset.path if (folder / name).exists()), None)
    if program is None:
        return "missing"
    done = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=False)
    text = done.stdout + done.stderr
    return next((word for word in text.split() if word[:1].isdigit()), "of unknown version")
