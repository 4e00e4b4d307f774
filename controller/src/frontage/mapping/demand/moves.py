# SPDX-License-Identifier: Apache-2.0
"""Make-before-break moves of a service from its sites to others.

    starting -> active -> leaving -> draining -> gone

A *starting* site waits for a replica that accepts connections. *Active* and *leaving* sites get first flights. A leaving site keeps
serving until all new sites are active and every switch knows them. Then it is *draining*: it keeps its connections, because packets
after the handshake name their server (docs/mapping.md). After the drain time it is *gone*.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Stage(StrEnum):
    """The stage of a service at one site."""

    STARTING = "starting"
    ACTIVE = "active"
    LEAVING = "leaving"
    DRAINING = "draining"
    GONE = "gone"

    @property
    def serves(self) -> bool:
        """True if first flights go to the site."""
        return self in (Stage.ACTIVE, Stage.LEAVING)

    @property
    def wanted(self) -> bool:
        """True if the last decision includes the site."""
        return self in (Stage.STARTING, Stage.ACTIVE)


@dataclass(frozen=True, slots=True)
class SiteStage:
    """The stage of a service at one site, and when it began."""

    stage: Stage
    since: float
    """Unix time."""


SiteStages = Mapping[int, SiteStage]
"""The stages of one service by site."""


def initial_stages(sites: Collection[int], now: float) -> dict[int, SiteStage]:
    """Return the stages of a service that runs at these sites and was never placed."""
    return {site: SiteStage(Stage.ACTIVE, now) for site in sites}


def decide(stages: SiteStages, wanted: Collection[int], now: float) -> dict[int, SiteStage]:
    """Return the stages after the decision to run the service at the ``wanted`` sites."""
    result = dict(stages)
    for site in wanted:
        have = stages.get(site)
        if have is None or not have.stage.wanted:
            # A leaving site still serves, so it is active at once.
            serves = have is not None and have.stage.serves
            result[site] = SiteStage(Stage.ACTIVE if serves else Stage.STARTING, now)
    for site, have in stages.items():
        if site not in wanted and have.stage.wanted:
            result[site] = SiteStage(Stage.LEAVING if have.stage.serves else Stage.GONE, now)
    return result


def advance(stages: SiteStages, accepting: Collection[int], now: float, *, settle: float, drain: float) -> dict[int, SiteStage]:
    """Return the stages at Unix time ``now``.

    ``accepting``: the sites where a replica accepts connections. ``settle``: seconds until every switch and dispatcher knows a new
    site. ``drain``: seconds for which a replica keeps its connections.
    """
    result = dict(stages)
    for site, have in stages.items():
        if have.stage is Stage.STARTING and site in accepting:
            result[site] = SiteStage(Stage.ACTIVE, now)
        elif have.stage is Stage.DRAINING and now - have.since >= drain:
            result[site] = SiteStage(Stage.GONE, now)
    wanted = {site: item for site, item in result.items() if item.stage.wanted}
    settled = all(item.stage is Stage.ACTIVE and now - item.since >= settle and site in accepting for site, item in wanted.items())
    for site, have in stages.items():
        if have.stage is Stage.LEAVING and wanted and settled and now - have.since >= settle:
            result[site] = SiteStage(Stage.DRAINING, now)
    return result
