"""How a service gets from the sites where it is to those where it shall be: make before break.

    starting -> active -> leaving -> draining -> gone

A site that is *starting* waits for a replica that accepts connections. *Active* and *leaving* ones get first flights. A leaving one
goes on while not all that were to come are there, and until every switch knows of them; then it is *draining*: what it has it
keeps, since what follows a handshake names its server (docs/mapping.md), and after a time it is gone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Stage(StrEnum):
    STARTING = "starting"
    ACTIVE = "active"
    LEAVING = "leaving"
    DRAINING = "draining"
    GONE = "gone"

    @property
    def serves(self) -> bool:
        """Whether first flights go there."""
        return self in (Stage.ACTIVE, Stage.LEAVING)

    @property
    def wanted(self) -> bool:
        return self in (Stage.STARTING, Stage.ACTIVE)


@dataclass(frozen=True, slots=True)
class Place:
    """A service at a site."""

    stage: Stage
    since: float
    """Unix time."""


Places = Mapping[int, Place]
"""By site."""


def begin(sites: Collection[int], now: float) -> dict[int, Place]:
    """Of a service that is at these sites, and was never placed."""
    return {site: Place(Stage.ACTIVE, now) for site in sites}


def decide(places: Places, wanted: Collection[int], now: float) -> dict[int, Place]:
    """Where it shall be from now on."""
    found = dict(places)
    for site in wanted:
        have = places.get(site)
        if have is None or not have.stage.wanted:
            # One that still serves has never ceased to.
            serves = have is not None and have.stage.serves
            found[site] = Place(Stage.ACTIVE if serves else Stage.STARTING, now)
    for site, have in places.items():
        if site not in wanted and have.stage.wanted:
            found[site] = Place(Stage.LEAVING if have.stage.serves else Stage.GONE, now)
    return found


def advance(places: Places, accepting: Collection[int], now: float, *, settle: float, drain: float) -> dict[int, Place]:
    """What has come about by now, where the sites ``accepting`` have a replica that does. ``settle``: seconds until every switch
    and dispatcher knows of a site; ``drain``: for which a replica keeps its connections."""
    found = dict(places)
    for site, have in places.items():
        if have.stage is Stage.STARTING and site in accepting:
            found[site] = Place(Stage.ACTIVE, now)
        elif have.stage is Stage.DRAINING and now - have.since >= drain:
            found[site] = Place(Stage.GONE, now)
    wanted = {site: one for site, one in found.items() if one.stage.wanted}
    known = all(one.stage is Stage.ACTIVE and now - one.since >= settle and site in accepting for site, one in wanted.items())
    for site, have in places.items():
        if have.stage is Stage.LEAVING and wanted and known and now - have.since >= settle:
            found[site] = Place(Stage.DRAINING, now)
    return found
