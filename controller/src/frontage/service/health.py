# SPDX-License-Identifier: Apache-2.0
"""The state and the statistics of the controller."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from frontage.state.reconcile import Outcome

DURATIONS = (0.001, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, math.inf)
"""Upper bounds in seconds of the histogram of durations."""


class Phase(StrEnum):
    """The state of the controller, in the order of a normal start."""

    CONNECTING = "connecting"
    STANDBY = "standby"
    INSTALLING = "installing"
    INSTALLED = "installed"
    FAILED = "failed"
    """The switch or the P4 program rejects the configuration; the controller retries with back-off."""


@dataclass(slots=True)
class Health:
    """State and statistics of a controller."""

    phase: Phase = Phase.CONNECTING
    error: str | None = None
    """The reason why the phase is not INSTALLED or STANDBY."""
    election_id: int = 0
    connections: int = 0
    """Number of connections to the switch."""
    pipelines_set: int = 0
    failures: int = 0
    reconciliations: int = 0
    last: Outcome | None = None
    writes: Counter[str] = field(default_factory=Counter)
    """Written entries by kind."""
    seconds: Counter[float] = field(default_factory=Counter)
    """Histogram of the durations of reconciliations, by bound of `DURATIONS`."""
    seconds_total: float = 0.0

    @property
    def ok(self) -> bool:
        return self.phase in (Phase.INSTALLED, Phase.STANDBY)

    def count(self, outcome: Outcome) -> None:
        """Record a reconciliation."""
        self.last = outcome
        self.reconciliations += 1
        self.writes.update(inserted=outcome.inserted, modified=outcome.modified, deleted=outcome.deleted)
        self.seconds[next(bound for bound in DURATIONS if outcome.seconds <= bound)] += 1
        self.seconds_total += outcome.seconds
