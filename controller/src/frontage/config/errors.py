# SPDX-License-Identifier: Apache-2.0
"""The error that a configuration file causes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from frontage.config.document import Path as FieldPath
from frontage.config.document import Problem


class ConfigError(Exception):
    """All problems of a configuration file, one a line: ``file:line:column: field: problem: fix``."""

    def __init__(self, file: Path, problems: Sequence[Problem]):
        self.file = file
        self.problems = sorted(problems, key=lambda p: (p.position.line, p.position.column) if p.position else (0, 0))
        super().__init__("\n".join(format_problem(file, problem) for problem in self.problems))

    def as_dicts(self) -> list[dict[str, object]]:
        """Return the problems for JSON."""
        return [
            {
                "file": str(self.file),
                "line": problem.position.line if problem.position else None,
                "column": problem.position.column if problem.position else None,
                "path": list(problem.path),
                "what": problem.what,
                "fix": problem.fix,
            }
            for problem in self.problems
        ]


def format_problem(file: Path, problem: Problem) -> str:
    position = str(file) if problem.position is None else f"{file}:{problem.position.line}:{problem.position.column}"
    field = format_path(problem.path)
    return f"{position}: {field + ': ' if field else ''}{problem.what}: {problem.fix}"


def format_path(path: FieldPath) -> str:
    """Return the path as text, such as ``servers[2].sid``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
