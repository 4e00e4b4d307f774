# SPDX-License-Identifier: Apache-2.0
"""Sections of the configuration about health checks: the checker, and the check of each VIP's servers (docs/health.md)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from frontage.fields import AddressField, IPAddress, Model, Name


class CheckKind(StrEnum):
    """The protocol of a check, and so the requirement that a healthy server meets."""

    TCP = "tcp"
    HTTP = "http"
    HTTPS = "https"
    HTTP3 = "http3"
    GRPC = "grpc"
    """The standard health service of gRPC, ``grpc.health.v1``."""
    SCRIPT = "script"
    """A command of the operator."""


class FailMode(StrEnum):
    """The treatment of new connections while no server of a VIP is healthy."""

    OPEN = "open"
    CLOSED = "closed"


HTTP_FIELDS = frozenset({"path", "host", "status", "body"})
TLS_FIELDS = frozenset({"verify"})
FIELDS_OF_KIND: Mapping[CheckKind, frozenset[str]] = {
    CheckKind.TCP: frozenset(),
    CheckKind.HTTP: HTTP_FIELDS,
    CheckKind.HTTPS: HTTP_FIELDS | TLS_FIELDS,
    CheckKind.HTTP3: HTTP_FIELDS | TLS_FIELDS,
    CheckKind.GRPC: TLS_FIELDS | {"host", "service", "tls"},
    CheckKind.SCRIPT: frozenset({"command"}),
}
"""The fields that only some kinds have."""


def _status_range(value: str) -> str:
    first, _, last = value.partition("-")
    if int(last or first) < int(first):
        raise ValueError("invalid range of status codes {}: the last is below the first")
    return value


StatusRange = Annotated[str, StringConstraints(pattern=r"^[1-5][0-9]{2}(-[1-5][0-9]{2})?$"), AfterValidator(_status_range)]


class HealthCheck(Model):
    """The check of every server of a VIP."""

    kind: CheckKind = Field(CheckKind.TCP, description="one of " + ", ".join(CheckKind), examples=["http"])
    interval: float = Field(2.0, ge=0.1, le=3600, description="the seconds between two checks of a server", examples=[2])
    timeout: float = Field(1.0, ge=0.01, le=3600, description="the seconds that a server has for its answer", examples=[1])
    rise: int = Field(
        2, ge=1, le=100, description="the consecutive passed checks after which a failed server recovers", examples=[2]
    )
    fall: int = Field(3, ge=1, le=100, description="the consecutive failed checks after which a server has failed", examples=[3])
    jitter: float = Field(0.1, ge=0, le=0.5, description="the random part of each interval, as a fraction of it", examples=[0.1])
    path: str = Field("/", pattern=r"^/[!-~]*$", description="the path of an HTTP request", examples=["/health"])
    host: str | None = Field(
        None,
        pattern=r"^[!-~]{1,253}$",
        description="the Host header and TLS server name; the VIP's address if absent",
        examples=["shop.example"],
    )
    status: StatusRange = Field("200-399", description="the HTTP status codes of a healthy server", examples=["200-299"])
    body: str | None = Field(None, min_length=1, description="a text that the HTTP body must contain", examples=["ready"])
    verify: bool = Field(True, description="whether the server needs a valid certificate for its name", examples=["false"])
    service: str = Field(
        "", max_length=255, description="the gRPC service to ask for; the whole server if empty", examples=["shop.Orders"]
    )
    tls: bool = Field(False, description="whether a gRPC server needs TLS", examples=["true"])
    command: tuple[str, ...] = Field(
        (), description="the program of a script check and its arguments", examples=["[/usr/local/bin/check-shop, --deep]"]
    )
    passive: bool = Field(
        False, description="whether a server that answers no packets or handshakes of clients fails a check, too", examples=["true"]
    )
    passive_packets: int = Field(
        100, ge=1, description="the packets without an answer in one window that fail a passive check", examples=[100]
    )
    passive_handshakes: int = Field(
        20, ge=1, description="the handshakes without an answer in one window that fail a passive check", examples=[20]
    )
    passive_reports: bool = Field(
        False, description="whether a server also fails a passive check if it reports no loads", examples=["true"]
    )
    passive_window: float = Field(2.0, ge=0.5, le=3600, description="the seconds of a passive check's window", examples=[2])
    fail_mode: FailMode = Field(
        FailMode.OPEN,
        description="'open' (use all servers) or 'closed' (drop new connections) when no server is healthy",
        examples=["open"],
    )

    @property
    def statuses(self) -> range:
        """The HTTP status codes of a healthy server."""
        first, _, last = self.status.partition("-")
        return range(int(first), int(last or first) + 1)


class Checker(Model):
    """The checker: the addresses from which it checks servers, and the switch's port behind which it is."""

    port: Name = Field(description="the name of one of `ports`, behind which the checker is", examples=["uplink"])
    addresses: tuple[AddressField, ...] = Field(
        min_length=1,
        max_length=2,
        description="the checker's own source addresses: one of each IP version in use",
        examples=["[192.0.2.250, '2001:db8:1::250']"],
    )

    def address(self, version: int) -> IPAddress | None:
        """Return the checker's address of this IP version."""
        return next((address for address in self.addresses if address.version == version), None)
