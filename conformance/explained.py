# SPDX-License-Identifier: Apache-2.0
"""Reads explained.toml: the reasons why some samples fail, each with its samples."""

from __future__ import annotations

import tomllib
from pathlib import Path

FILE = Path(__file__).resolve().parent / "explained.toml"


class ExplainedError(Exception):
    """A fault in explained.toml."""


def load(file: Path = FILE) -> dict[str, dict[str, str]]:
    """Return the reasons by check and sample."""
    reasons: dict[str, dict[str, str]] = {}
    for check, groups in tomllib.loads(file.read_text()).items():
        known = reasons.setdefault(check, {})
        for group in groups:
            for sample in group["samples"]:
                if sample in known:
                    raise ExplainedError(f"{file.name}: {check}: {sample} has two reasons: remove one")
                known[sample] = group["reason"]
    return reasons
