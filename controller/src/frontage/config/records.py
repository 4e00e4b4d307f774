# SPDX-License-Identifier: Apache-2.0
"""The section ``records`` of the configuration file: the record store, which the distribution ``frontage-records`` provides."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

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


class Tls(Model):
    certificate: Path = Field(description="a PEM file with the certificate chain of the server", examples=["records.pem"])
    key: Path = Field(description="a PEM file with the private key", examples=["records-key.pem"])
    clients: Path | None = Field(
        None,
        description="a PEM file with certificate authorities; if given, every client needs a certificate from one of them",
        examples=["ca.pem"],
    )


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
    if (tls := settings.tls) is not None:
        clients = None if tls.clients is None else (folder / tls.clients).absolute()
        update["tls"] = Tls(certificate=(folder / tls.certificate).absolute(), key=(folder / tls.key).absolute(), clients=clients)
    if settings.dns is not None:
        update["dns"] = settings.dns.in_folder(folder)
    return settings.model_copy(update=update)
