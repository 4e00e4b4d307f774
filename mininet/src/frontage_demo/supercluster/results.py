# SPDX-License-Identifier: Apache-2.0
"""The results of all parts of a run."""

from __future__ import annotations

from dataclasses import dataclass

from .following import FollowResult
from .partitions import PartitionResult
from .plan import Result


@dataclass
class Results:
    """The results; None for a part that has not run."""

    storm: Result | None = None
    following: FollowResult | None = None
    partitions: PartitionResult | None = None

    @property
    def violations(self) -> list[str]:
        """The violations that all parts have found."""
        return [what for part in (self.storm, self.following, self.partitions) if part is not None for what in part.violations]
