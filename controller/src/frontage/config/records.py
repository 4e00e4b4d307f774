# SPDX-License-Identifier: Apache-2.0
"""The section ``records`` of the configuration file: the record store, which the distribution ``frontage-records`` provides."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from frontage.config.tls import Tls
from frontage.fields import Listen, Model, split_listen

SQLITE = "sqlite:///"
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?"
Domain = Annotated[str, StringConstraints(max_length=253, pattern=rf"^{_LABEL}(\.{_LABEL})*$")]
"""A domain name in lower case, without a final dot."""
Url = Annotated[str, StringConstraints(pattern=r"^https?://\S+$")]


class Dns(Model):
    zone: Domain = Field(description="the domain whose names are records", examples=["example"])
    listen: Listen = Field("127.0.0.1:5353", description="host:port, of UDP and TCP", examples=["0.0.0.0:53"])
    name_servers: tuple[Domain, ...] = Field(min_length=1, description="the names of the zone's name servers, the primary first")
    contact: Domain = Field(description="the mail address of the operator, with a dot for the @", examples=["hostmaster.example"])
    ttl: int = Field(30, ge=0, le=86400, description="the time for which resolvers cache an answer, in seconds", examples=[30])
    negative_ttl: int = Field(
        5, ge=0, le=86400, description="the time for which resolvers cache a negative answer, in seconds", examples=[5]
    )
    servers: dict[int, Url] = Field(
        default_factory=dict, description="the record servers to query, by site id; `records.listen` if absent"
    )
    token: Path | None = Field(
        None, description="a file with the token for the record servers, if they require one", examples=["dns-token"]
    )
    authorities: Path | None = Field(
        None,
        description="a PEM file with the certificate authorities of the record servers; those of the system if absent",
        examples=["ca.pem"],
    )
    regions: dict[IPv4Network | IPv6Network, tuple[int, ...]] = Field(
        default_factory=dict,
        description="client prefixes, and the sites nearest to them, the nearest first",
        examples=[{"198.51.100.0/24": [2, 1]}],
    )

    @property
    def address(self) -> tuple[str, int]:
        return split_listen(self.listen)

    def in_folder(self, folder: Path) -> Dns:
        """Return the settings with absolute paths."""
        files = {"token": self.token, "authorities": self.authorities}
        return self.model_copy(update={name: (folder / file).absolute() for name, file in files.items() if file is not None})


class RecordPlacement(Model):
    epoch: float = Field(75.0, ge=1, le=86400, description="the seconds between placement epochs", examples=[75])
    min_replicas: int | None = Field(
        None, ge=1, le=255, description="the minimum number of sites of a record (F); `controllers` if absent", examples=[3]
    )
    max_replicas: int | None = Field(
        None, ge=1, le=255, description="the maximum number of sites of a record (M); all sites if absent", examples=[5]
    )
    mu: float = Field(0.7, gt=0, le=1, description="the maximum utilization of the measured capacity", examples=[0.7])
    groups: int = Field(1000, ge=1, le=100_000, description="the maximum number of placement groups", examples=[1000])
    requests: int = Field(300, ge=1, le=1 << 31, description="requests at a site before a record may move (m)", examples=[300])
    share: float = Field(0.036, gt=0, le=1, description="the maximum number of messages per request", examples=[0.036])
    moves_per_second: float = Field(10.0, gt=0, le=10_000, description="the maximum number of moves per second", examples=[10])
    bytes_per_second: float = Field(
        10_000_000.0, gt=0, le=1e12, description="the maximum number of bytes per second that moves copy", examples=[10000000]
    )
    regions: dict[IPv4Network | IPv6Network, int] = Field(
        default_factory=dict,
        description="client prefixes with their nearest site; other clients belong to the server's site",
        examples=[{"198.51.100.0/24": 2}],
    )

    @model_validator(mode="after")
    def _check(self) -> RecordPlacement:
        if self.min_replicas is not None and self.max_replicas is not None and self.min_replicas > self.max_replicas:
            raise ValueError(f"min_replicas is {self.min_replicas}, max_replicas {self.max_replicas}: raise max_replicas")
        if self.share * self.requests <= 1:
            raise ValueError("share must be above 1 / requests: otherwise no messages are left for moves")
        return self


class Records(Model):
    listen: Listen = Field("127.0.0.1:8480", description="host:port of the HTTP server", examples=["127.0.0.1:8480"])
    store: str = Field(
        "sqlite:///records.db",
        pattern=r"^(sqlite:///.+|nats://[^,]+(,nats://[^,]+)*)$",
        description="sqlite:///FILE, or one or more nats://HOST:PORT, separated by commas",
        examples=["sqlite:///records.db"],
    )
    max_bytes: int = Field(65536, ge=64, le=1 << 19, description="the maximum size of a document in bytes", examples=[65536])
    max_ahead: float = Field(
        5.0,
        ge=0,
        le=3600,
        description="the time by which a client's timestamp may be ahead of the server's clock, in seconds",
        examples=[5],
    )
    replicas: int = Field(
        3, ge=1, le=5, description="the number of servers in a site that store its records: 1, 3 or 5", examples=[3]
    )
    controllers: int = Field(3, ge=1, le=16, description="the number of sites that know where a record is (F)", examples=[3])
    dns: Dns | None = Field(None, description="the records as a DNS zone, for `frontage records dns`; disabled if absent")
    placement: RecordPlacement | None = Field(
        None, description="JetStream: moves records close to their demand; if absent, records do not move"
    )
    tokens: Path | None = Field(
        None, description="a file with bearer tokens; if given, every client needs one", examples=["tokens.toml"]
    )
    tls: Tls | None = Field(None, description="HTTPS; plain HTTP if absent")

    @property
    def file(self) -> Path | None:
        """The database file if the engine is SQLite."""
        return Path(self.store.removeprefix(SQLITE)) if self.store.startswith(SQLITE) else None

    @property
    def address(self) -> tuple[str, int]:
        return split_listen(self.listen)


def in_folder(settings: Records, folder: Path) -> Records:
    """Return the settings with absolute paths: in the file they are relative to its folder."""
    update: dict[str, object] = {}
    if settings.file is not None:
        update["store"] = f"{SQLITE}{(folder / settings.file).absolute()}"
    if settings.tokens is not None:
        update["tokens"] = (folder / settings.tokens).absolute()
    if settings.tls is not None:
        update["tls"] = settings.tls.in_folder(folder)
    if settings.dns is not None:
        update["dns"] = settings.dns.in_folder(folder)
    return settings.model_copy(update=update)
