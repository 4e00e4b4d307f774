# SPDX-License-Identifier: Apache-2.0
"""The environments and all rows."""

from __future__ import annotations

from dataclasses import dataclass

import guide
import tutorials


@dataclass(frozen=True)
class Environment:
    key: str
    """First part of the names of its rows."""
    variable: str
    """Environment variable with the path of its checkout."""
    repository: str
    """Its repository on github.com."""


ENVIRONMENTS = [
    Environment("tutorials", "TUTORIALS", "p4lang/tutorials"),
    Environment("p4-guide", "P4GUIDE", "jafingerhut/p4-guide"),
]
ROWS = [*tutorials.ROWS, *guide.ROWS]
