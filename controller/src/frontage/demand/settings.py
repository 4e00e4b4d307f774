"""The configuration's section ``placement``."""

from __future__ import annotations

from pydantic import Field

from frontage.enduser.settings import ServiceName, SiteId
from frontage.model import Model


class PlacedService(Model):
    name: ServiceName = Field(description="the Artemis name of one of `vips`", examples=["films.example"])
    updates: float = Field(
        0.0,
        ge=0,
        le=1e9,
        description="the updates a second that every replica takes; 0: none, so there are as many replicas as may be",
        examples=[0.5],
    )


class PlacementSite(Model):
    site: SiteId = Field(description="the id of a site", examples=[1])
    capacity: float = Field(ge=0, le=1e12, description="the handshakes a second that it can serve; 0: no replicas", examples=[1000])


class Placement(Model):
    services: tuple[PlacedService, ...] = Field(min_length=1, description="the services whose sites follow their demand")
    sites: tuple[PlacementSite, ...] = Field(min_length=1, description="the sites that may have replicas")
    epoch: float = Field(75.0, ge=0.1, le=86400, description="the seconds between two looks at the demand", examples=[75])
    min_replicas: int = Field(3, ge=1, le=255, description="the replicas of each service whatever happens (F)", examples=[3])
    max_replicas: int | None = Field(None, ge=1, le=255, description="the most replicas (M); all sites if absent", examples=[5])
    mu: float = Field(0.7, gt=0, le=1, description="the share of the sites' capacity that demand may take", examples=[0.7])
    write_cost: float = Field(1.0, gt=0, le=1e9, description="the cost of an update by that of a handshake", examples=[1])
    seed: int = Field(0, ge=0, lt=1 << 64, description="the seed of random places", examples=[0])
    requests: int = Field(300, ge=1, le=1 << 31, description="the handshakes at a site for one load report (m)", examples=[300])
    moved: float = Field(
        0.1, ge=0, le=1, description="the share of handshakes from elsewhere than before, for a load report", examples=[0.1]
    )
    share: float = Field(0.036, gt=0, le=1, description="the messages by handshakes, at most", examples=[0.036])
    drain: float = Field(
        300.0,
        ge=0,
        le=86400,
        description="the seconds for which a replica keeps its connections after it gets no new ones",
        examples=[300],
    )

    @property
    def capacity(self) -> dict[int, float]:
        """By site."""
        return {one.site: one.capacity for one in self.sites}
