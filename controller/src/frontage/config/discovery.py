# SPDX-License-Identifier: Apache-2.0
"""The section ``vips[].discovery`` of the configuration: where the servers of a VIP come from."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from frontage.config.remote_servers import Encapsulation
from frontage.fields import AddressField, L4Port, Model
from frontage.limits import MAX_SID

Sid = Annotated[int, Field(ge=0, le=MAX_SID)]
Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]+(/\S*)?$", max_length=2048)]
DnsName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9.])?$", max_length=253)]
Label = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", max_length=253)]


class Record(StrEnum):
    """The type of a DNS record."""

    A = "A"
    AAAA = "AAAA"
    SRV = "SRV"


class _Source(Model):
    """The fields of all kinds."""

    interval: float = Field(10.0, ge=0.1, le=3600, description="the seconds between queries", examples=[10])
    sids: tuple[Sid, Sid] = Field(
        description="the first and the last SID for discovered servers; their number bounds the servers", examples=["[100, 199]"]
    )
    min_servers: int = Field(
        1, ge=0, le=4096, description="the number of servers below which a result is rejected as implausible", examples=[1]
    )
    drain: float = Field(
        300.0, ge=0, le=86400, description="the seconds for which a server that is gone keeps its connections", examples=[300]
    )
    encapsulation: Encapsulation | None = Field(
        None, description="the tunnel to each discovered server; none if absent", examples=["{ kind: vxlan }"]
    )


class FileSource(_Source):
    kind: Literal["file"] = Field(description="'file'")
    path: Path = Field(description="the path of a JSON or YAML file in Prometheus' `file_sd` format", examples=["targets.json"])


class HttpSource(_Source):
    kind: Literal["http"] = Field(description="'http'")
    url: Url = Field(
        description="the URL of an endpoint in Prometheus' `http_sd` format", examples=["https://inventory.example/targets"]
    )
    token_file: Path | None = Field(None, description="the path of a file with a bearer token", examples=["inventory.token"])
    ca_file: Path | None = Field(None, description="the path of the CA certificates; the system's if absent", examples=["ca.pem"])


class DnsSource(_Source):
    kind: Literal["dns"] = Field(description="'dns'")
    name: DnsName = Field(description="the DNS name", examples=["web.service.example"])
    record: Record = Field(description="'A', 'AAAA' or 'SRV'", examples=["A"])
    port: L4Port | None = Field(None, description="the servers' port, for A and AAAA", examples=[8080])
    resolver: AddressField | None = Field(None, description="the DNS server; the system's if absent", examples=["192.0.2.53"])


class KubernetesSource(_Source):
    kind: Literal["kubernetes"] = Field(description="'kubernetes'")
    url: Url = Field(description="the URL of the API server", examples=["https://kubernetes.default.svc"])
    namespace: Label = Field("default", description="the namespace of the service", examples=["default"])
    service: Label = Field(description="the name of the service, whose EndpointSlices are read", examples=["web"])
    port: Label | None = Field(None, description="the name of the port, if the service has several", examples=["http"])
    token_file: Path | None = Field(None, description="the path of a file with a bearer token", examples=["kubernetes.token"])
    ca_file: Path | None = Field(None, description="the path of the CA certificates; the system's if absent", examples=["ca.crt"])


Source = FileSource | HttpSource | DnsSource | KubernetesSource
PATHS = ("path", "token_file", "ca_file")
"""Fields with paths."""


def in_folder(source: Source, folder: Path) -> Source:
    """Return the source with absolute paths, for paths relative to ``folder``."""
    paths = {name: (folder / value).absolute() for name in PATHS if (value := getattr(source, name, None)) is not None}
    return source.model_copy(update=paths)
