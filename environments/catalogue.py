# SPDX-License-Identifier: Apache-2.0
"""The environments and all rows."""

from __future__ import annotations

from dataclasses import dataclass

import guide
import learning
import tutorials


@dataclass(frozen=True)
class Environment:
    key: str
    """First part of the names of its rows."""
    variable: str
    """Environment variable with the path of its checkout."""
    repository: str
    """Its repository on github.com."""
    modules: tuple[str, ...] = ()
    """Environment variables with folders of Python modules that its scripts import."""


ENVIRONMENTS = [
    Environment("tutorials", "TUTORIALS", "p4lang/tutorials"),
    Environment("p4-learning", "P4LEARNING", "nsg-ethz/p4-learning", ("P4UTILS", "BMV2_PYTHON")),
    Environment("p4-guide", "P4GUIDE", "jafingerhut/p4-guide"),
]
ROWS = [*tutorials.ROWS, *learning.ROWS, *guide.ROWS]
