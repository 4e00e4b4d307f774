"""The configuration's section ``records.dns``."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from frontage.fields import Listen
from frontage.model import Model

_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?"
Domain = Annotated[str, StringConstraints(max_length=253, pattern=rf"^{_LABEL}(\.{_LABEL})*$")]
"""Without the final dot, in lower case."""
Url = Annotated[str, StringConstraints(pattern=r"^https?://\S+$")]


class Dns(Model):
    zone: Domain = Field(description="the domain whose names are records", examples=["example"])
    listen: Listen = Field("127.0.0.1:5353", description="host:port, of UDP and TCP", examples=["0.0.0.0:53"])
    name_servers: tuple[Domain, ...] = Field(
        min_length=1, description="names of the zone's name servers, the first the primary one"
    )
    contact: Domain = Field(description="a mail address of who runs it, its @ as a dot", examples=["hostmaster.example"])
    ttl: int = Field(30, ge=0, le=86400, description="the seconds for which resolvers keep an answer", examples=[30])
    negative_ttl: int = Field(5, ge=0, le=86400, description="the seconds for which they keep that there is none", examples=[5])
    servers: dict[int, Url] = Field(
        default_factory=dict, description="record servers to ask, by site id; that of `records.listen` if absent"
    )
    token: Path | None = Field(None, description="a file with the token for these, if they want one", examples=["dns-token"])
    authorities: Path | None = Field(
        None, description="PEM of the authorities that these have certificates of; the system's if absent", examples=["ca.pem"]
    )
    regions: dict[IPv4Network | IPv6Network, tuple[int, ...]] = Field(
        default_factory=dict,
        description="prefixes of askers, and the sites nearest to them, first the nearest",
        examples=[{"198.51.100.0/24": [2, 1]}],
    )

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)

    def in_folder(self, folder: Path) -> Dns:
        """With the paths of files made absolute."""
        files = {"token": self.token, "authorities": self.authorities}
        return self.model_copy(update={name: (folder / file).absolute() for name, file in files.items() if file is not None})
