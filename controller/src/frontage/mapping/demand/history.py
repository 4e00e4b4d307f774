"""What the controller that places has taken in of the sites' load reports, and what became of each service's moves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from frontage.mapping.demand.estimate import Seen
from frontage.mapping.demand.reports import Told


@dataclass(slots=True)
class Taken:
    """Of one service at one site, what was taken from its reports."""

    requests: int = 0
    seconds: float = 0.0
    reports: int = 0


@dataclass(slots=True)
class Move:
    """The epochs of one move, by their numbers."""

    shown: int
    """The first whose demand asked for it."""
    decided: int
    active: int | None = None
    """The last that had ended when first flights went to all of its sites; None: they do not yet."""


@dataclass(slots=True)
class Heard:
    """Of one service."""

    sites: dict[int, Taken] = field(default_factory=dict)
    news: bool = True
    """Its demand has moved since it was placed."""
    asked: int | None = None
    """The first epoch whose demand asked for what was not done yet."""
    move: Move | None = None
    """The last one."""

    def listen(self, told: Mapping[int, Told], least: int) -> tuple[dict[int, Seen], int, int]:
        """Take in what is new. Returns what each site sees: by all that was told in this epoch, else by the last report, which was
        of some ``least`` handshakes; and how many handshakes and reports are new."""
        seen: dict[int, Seen] = {}
        requests = reports = 0
        for site, report in told.items():
            before = self.sites.get(site, Taken())
            came, seconds = report.requests - before.requests, report.seconds - before.seconds
            requests += came
            reports += report.reports - before.reports
            self.news |= seconds > 0
            seen[site] = Seen(came / seconds, came, report.regions) if seconds > 0 else Seen(report.rate, least, report.regions)
            self.sites[site] = Taken(report.requests, report.seconds, report.reports)
        return seen, requests, reports

    def decided(self, epoch: int, *, differs: bool, moves: bool) -> None:
        """What became of that epoch: whether it ``differs`` from where the service is, and whether that ``moves`` it."""
        self.asked = (self.asked or epoch) if differs else None
        self.news = differs and not moves
        if moves and self.asked is not None:
            self.move, self.asked = Move(self.asked, epoch), None

    @property
    def state(self) -> dict[str, Any]:
        """As it is kept in the store, for whoever places next."""
        sites = {str(site): (one.requests, one.seconds, one.reports) for site, one in self.sites.items()}
        return {"heard": sites, "news": self.news, "asked": self.asked, "move": moved(self.move)}

    @classmethod
    def recover(cls, document: Mapping[str, Any]) -> Heard:
        """From `state`."""
        sites = {int(site): Taken(*numbers) for site, numbers in document["heard"].items()}
        move = document.get("move")
        return cls(sites, document["news"], document.get("asked"), Move(**move) if move else None)


def moved(move: Move | None) -> dict[str, int | None] | None:
    """For people and programs."""
    return None if move is None else {"shown": move.shown, "decided": move.decided, "active": move.active}


def last_epoch(documents: Iterable[Mapping[str, Any]]) -> int:
    """The number of the last one that anybody placed at; 0 if nobody did."""
    return max((document.get("number", 0) for document in documents), default=0)
