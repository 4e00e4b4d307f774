"""The configuration's section ``records``."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from frontage.model import Model
from frontage.records.record import Bounds

SQLITE = "sqlite:///"


class Records(Model):
    listen: str = Field(
        "127.0.0.1:8480", pattern=r"^.+:\d{1,5}$", description="host:port of the HTTP server", examples=["127.0.0.1:8480"]
    )
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
    """With the path of SQLite's file made absolute: it is relative to the configuration's folder."""
    if settings.file is None:
        return settings
    return settings.model_copy(update={"store": f"{SQLITE}{(folder / settings.file).absolute()}"})
