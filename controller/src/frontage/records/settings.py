"""The configuration's section ``records``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from pydantic import Field

from frontage.fields import Listen
from frontage.model import Model
from frontage.records.dns.settings import Dns
from frontage.records.record import Bounds

SQLITE = "sqlite:///"


class May(StrEnum):
    """What a client may do; each includes those before."""

    READ = "read"
    WRITE = "write"
    PLACE = "place"

    def includes(self, other: May) -> bool:
        order = list(May)
        return order.index(self) >= order.index(other)


class Tls(Model):
    certificate: Path = Field(description="the server's certificate chain, PEM", examples=["records.pem"])
    key: Path = Field(description="its key, PEM", examples=["records-key.pem"])
    clients: Path | None = Field(
        None, description="PEM of the authorities that clients need a certificate of; none if absent", examples=["ca.pem"]
    )


class Records(Model):
    listen: Listen = Field("127.0.0.1:8480", description="host:port of the HTTP server", examples=["127.0.0.1:8480"])
    store: str = Field(
        "sqlite:///records.db",
        pattern=r"^(sqlite:///.+|nats://[^,]+(,nats://[^,]+)*)$",
        description="sqlite:///FILE, or nats://HOST:PORT, or several of these with commas",
        examples=["sqlite:///records.db"],
    )
    max_bytes: int = Field(65536, ge=64, le=1 << 19, description="the most bytes of a document", examples=[65536])
    max_ahead: float = Field(
        5.0, ge=0, le=3600, description="the seconds that a client's time stamp may be ahead of the server's clock", examples=[5]
    )
    replicas: int = Field(
        3, ge=1, le=5, description="the servers of a site that keep what is ordered there: 1, 3 or 5", examples=[3]
    )
    controllers: int = Field(3, ge=1, le=16, description="the sites that know where a record is (F)", examples=[3])
    dns: Dns | None = Field(None, description="the records as a DNS zone, for `frontage records dns`; none if absent")
    tokens: Path | None = Field(
        None, description="the file of bearer tokens, without one of which nobody is served", examples=["tokens.toml"]
    )
    tls: Tls | None = Field(None, description="HTTPS; plain HTTP if absent")

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.max_bytes, round(self.max_ahead * 1e6))

    @property
    def file(self) -> Path | None:
        """SQLite's, if that is the engine."""
        return Path(self.store.removeprefix(SQLITE)) if self.store.startswith(SQLITE) else None

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)


def in_folder(settings: Records, folder: Path) -> Records:
    """With the paths of files made absolute: they are relative to the configuration's folder."""
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
