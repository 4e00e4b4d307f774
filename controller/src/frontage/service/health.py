"""How the controller is: what it is doing, and what it has done."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from frontage.state.reconcile import Outcome

DURATIONS = (0.001, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, math.inf)
"""Upper bounds, in seconds, of the classes in which durations are counted."""


class Phase(StrEnum):
    """What the controller is doing, in the order of a healthy start."""

    CONNECTING = "connecting"
    STANDBY = "standby"
    INSTALLING = "installing"
    INSTALLED = "installed"
    FAILED = "failed"
    """The switch or the P4 program refuses the configuration; tried again with back-off."""


@dataclass(slots=True)
class Health:
    phase: Phase = Phase.CONNECTING
    error: str | None = None
    """Why the phase is not INSTALLED (or STANDBY)."""
    election_id: int = 0
    connections: int = 0
    """Connections to the switch so far."""
    pipelines_set: int = 0
    failures: int = 0
    reconciliations: int = 0
    last: Outcome | None = None
    writes: Counter[str] = field(default_factory=Counter)
    """Entries written, by kind."""
    seconds: Counter[float] = field(default_factory=Counter)
    """Reconciliations by duration: a histogram of `DURATIONS`."""
    seconds_total: float = 0.0

    @property
    def ok(self) -> bool:
        return self.phase in (Phase.INSTALLED, Phase.STANDBY)

    def count(self, outcome: Outcome) -> None:
        self.last = outcome
        self.reconciliations += 1
        self.writes.update(inserted=outcome.inserted, modified=outcome.modified, deleted=outcome.deleted)
        self.seconds[next(bound for bound in DURATIONS if outcome.seconds <= bound)] += 1
        self.seconds_total += outcome.seconds
