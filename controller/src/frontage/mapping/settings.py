# SPDX-License-Identifier: Apache-2.0
"""The sections ``end_users`` and ``placement`` of the configuration file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints

from frontage.fields import Model
from frontage.limits import MAX_REDUNDANCY, MAX_REGION, MAX_SERVICE, MAX_SITE
from frontage.naming import canonical_name

SiteId = Annotated[int, Field(ge=1, le=MAX_SITE)]
ServiceName = Annotated[str, StringConstraints(pattern=r"^\S{1,255}$"), AfterValidator(canonical_name)]


def _url(value: str) -> str:
    parts = urlsplit(value)
    try:
        good = parts.scheme == "http" and parts.hostname and parts.port and parts.path in ("", "/")
    except ValueError:
        good = False
    if not good:
        raise ValueError("invalid dispatcher URL {}")
    return value.rstrip("/")


class Policy(StrEnum):
    """The rule by which a dispatcher chooses among the best sites and their replicas."""

    LATENCY = "latency"
    LOAD = "load"
    RANDOM = "random"


class ManagedDispatcher(Model):
    """A dispatcher that this controller manages."""

    site: SiteId = Field(description="the id of the dispatcher's site", examples=[1])
    url: Annotated[str, AfterValidator(_url)] = Field(
        description="the URL of the dispatcher's HTTP service", examples=["http://[2001:db8:1:d::1]:8080"]
    )


class MappedService(Model):
    """A service with settings other than the defaults."""

    name: ServiceName = Field(description="the name that clients ask for", examples=["films.example"])
    id: int | None = Field(
        None,
        ge=1,
        le=MAX_SERVICE,
        description="the service's number in the tables, equal at all sites; any if absent",
        examples=[3],
    )
    redundancy: int = Field(
        1, ge=1, le=MAX_REDUNDANCY, description=f"the number of sites that get a first flight, 1 to {MAX_REDUNDANCY}", examples=[2]
    )
    policy: Policy = Field(Policy.LATENCY, description="one of " + ", ".join(Policy), examples=["latency"])
    alpn: tuple[str, ...] = Field(("h3",), min_length=1, description="the service's application protocols", examples=["[h3]"])


class EndUsers(Model):
    """The section ``end_users``."""

    store: str = Field(
        "sqlite:///mapping.db",
        pattern=r"^(sqlite:///.+|postgresql(\+psycopg)?://.+)$",
        description="sqlite:///FILE, or postgresql://USER@HOST/DATABASE for several controllers",
        examples=["sqlite:///mapping.db"],
    )
    dispatchers: tuple[ManagedDispatcher, ...] = Field((), description="the dispatchers that this controller manages")
    services: tuple[MappedService, ...] = Field(
        (), description="services with other settings than the defaults; replicas announce the others"
    )
    interval: float = Field(2.0, ge=0.1, le=3600, description="the seconds between computations", examples=[2])
    hysteresis: float = Field(
        0.1,
        ge=0,
        le=1,
        description="the share by which the RTT of a client's site may exceed that of the best site",
        examples=[0.1],
    )
    slack_us: float = Field(
        1000.0, ge=0, le=1e6, description="the microseconds by which the RTT may exceed it in addition", examples=[1000]
    )
    window: float = Field(300.0, ge=1, description="the seconds over which the minimum RTT is taken", examples=[300])
    max_age: float = Field(604800.0, ge=1, description="the seconds after which an RTT expires", examples=[604800])
    prefix_length4: int = Field(24, ge=8, le=32, description="the length of the longest IPv4 client prefix", examples=[24])
    prefix_length6: int = Field(48, ge=16, le=128, description="the length of the longest IPv6 client prefix", examples=[48])
    probes_per_second: float = Field(
        10.0,
        ge=0,
        le=10000,
        description="the most addresses per second that a dispatcher probes; 0 disables probing",
        examples=[10],
    )
    max_regions: int = Field(
        MAX_REGION,
        ge=1,
        le=MAX_REGION,
        description="the most regions; prefixes of further regions inherit their parent's region",
        examples=[8192],
    )

    def prefix_length(self, family: int) -> int:
        """Return the length of the longest client prefix of IP version ``family``."""
        return self.prefix_length4 if family == 4 else self.prefix_length6


def in_folder(settings: EndUsers, folder: Path) -> EndUsers:
    """Return the settings with an absolute path of the SQLite file. In the file it is relative to the configuration's folder."""
    scheme, separator, path = settings.store.partition("sqlite:///")
    if not separator:
        # SQLAlchemy's default driver is another one.
        return settings.model_copy(update={"store": scheme.replace("postgresql://", "postgresql+psycopg://", 1)})
    return settings.model_copy(update={"store": f"sqlite:///{(folder / path).absolute()}"})


class PlacedService(Model):
    """A service that is placed by demand."""

    name: ServiceName = Field(description="the Artemis name of one of `vips`", examples=["films.example"])
    updates: float = Field(
        0.0,
        ge=0,
        le=1e9,
        description="the updates per second, which every replica must take; 0: none, so max_replicas apply",
        examples=[0.5],
    )


class PlacementSite(Model):
    """A site that may have replicas."""

    site: SiteId = Field(description="the id of a site", examples=[1])
    capacity: float = Field(
        ge=0, le=1e12, description="the handshakes per second that the site can serve; 0: no replicas", examples=[1000]
    )


class Placement(Model):
    """The section ``placement``."""

    services: tuple[PlacedService, ...] = Field(min_length=1, description="the services that are placed by demand")
    sites: tuple[PlacementSite, ...] = Field(min_length=1, description="the sites that may have replicas")
    epoch: float = Field(75.0, ge=0.1, le=86400, description="the seconds between placement epochs", examples=[75])
    min_replicas: int = Field(3, ge=1, le=255, description="the least number of replicas of each service (F)", examples=[3])
    max_replicas: int | None = Field(
        None, ge=1, le=255, description="the largest number of replicas (M); all sites if absent", examples=[5]
    )
    mu: float = Field(0.7, gt=0, le=1, description="the share of the sites' capacity that demand may use", examples=[0.7])
    write_cost: float = Field(1.0, gt=0, le=1e9, description="the cost of an update relative to a handshake", examples=[1])
    seed: int = Field(0, ge=0, lt=1 << 64, description="the seed of random sites", examples=[0])
    requests: int = Field(300, ge=1, le=1 << 31, description="the handshakes at a site per load report (m)", examples=[300])
    moved: float = Field(
        0.1,
        ge=0,
        le=1,
        description="the share of handshakes from other regions than before that a report needs",
        examples=[0.1],
    )
    share: float = Field(0.036, gt=0, le=1, description="the most messages per handshake", examples=[0.036])
    drain: float = Field(
        300.0,
        ge=0,
        le=86400,
        description="the seconds for which a replica keeps its connections after it stops getting new ones",
        examples=[300],
    )

    @property
    def capacity(self) -> dict[int, float]:
        """Capacities by site."""
        return {item.site: item.capacity for item in self.sites}
