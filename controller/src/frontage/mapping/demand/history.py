# SPDX-License-Identifier: Apache-2.0
"""The placing controller's state of each service: which load reports it has processed, and the epochs of the last move."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from frontage.mapping.demand.estimate import SiteDemand
from frontage.mapping.demand.reports import SiteReports


@dataclass(slots=True)
class ReportTotals:
    """The part of one site's reports of one service that has been processed."""

    requests: int = 0
    seconds: float = 0.0
    reports: int = 0


@dataclass(slots=True)
class Move:
    """The epochs of one move, by number."""

    shown: int
    """The first epoch whose demand asked for the move."""
    decided: int
    """The epoch that decided on the move."""
    active: int | None = None
    """The last epoch that had ended when first flights went to all of the new sites; None until they do."""


@dataclass(slots=True)
class DemandReports:
    """The processed load reports of one service, and its moves."""

    sites: dict[int, ReportTotals] = field(default_factory=dict)
    has_changed: bool = True
    """Whether demand has changed since the service was placed."""
    wanted_since: int | None = None
    """The first epoch whose demand asked for a move that has not been made."""
    move: Move | None = None
    """The last move."""

    def process(self, reports: Mapping[int, SiteReports], min_requests: int) -> tuple[dict[int, SiteDemand], int, int]:
        """Take in new reports. Returns the demand by site, and the numbers of new handshakes and of new reports.

        A site's demand is computed from all reports of this epoch. Without one it is that of the last report, which was about
        ``min_requests`` handshakes.
        """
        demand: dict[int, SiteDemand] = {}
        new_requests = new_reports = 0
        for site, total in reports.items():
            done = self.sites.get(site, ReportTotals())
            requests, seconds = total.requests - done.requests, total.seconds - done.seconds
            new_requests += requests
            new_reports += total.reports - done.reports
            self.has_changed |= seconds > 0
            demand[site] = (
                SiteDemand(requests / seconds, requests, total.regions)
                if seconds > 0
                else SiteDemand(total.rate, min_requests, total.regions)
            )
            self.sites[site] = ReportTotals(total.requests, total.seconds, total.reports)
        return demand, new_requests, new_reports

    def on_decision(self, epoch: int, *, differs: bool, moves: bool) -> None:
        """Note the outcome of an epoch: whether the wanted sites differ from the active ones, and whether the service moves."""
        self.wanted_since = (self.wanted_since or epoch) if differs else None
        self.has_changed = differs and not moves
        if moves and self.wanted_since is not None:
            self.move, self.wanted_since = Move(self.wanted_since, epoch), None

    @property
    def state(self) -> dict[str, Any]:
        """The state as kept in the store, from which the next leader recovers."""
        sites = {str(site): (total.requests, total.seconds, total.reports) for site, total in self.sites.items()}
        return {"heard": sites, "news": self.has_changed, "asked": self.wanted_since, "move": move_document(self.move)}

    @classmethod
    def recover(cls, document: Mapping[str, Any]) -> DemandReports:
        """Rebuild the state from a document that contains `state`."""
        sites = {int(site): ReportTotals(*numbers) for site, numbers in document["heard"].items()}
        move = document.get("move")
        return cls(sites, document["news"], document.get("asked"), Move(**move) if move else None)


def move_document(move: Move | None) -> dict[str, int | None] | None:
    """Return the move as plain values."""
    return None if move is None else {"shown": move.shown, "decided": move.decided, "active": move.active}


def last_epoch(documents: Iterable[Mapping[str, Any]]) -> int:
    """Return the number of the last placement epoch, by any controller; 0 before the first."""
    return max((document.get("number", 0) for document in documents), default=0)
