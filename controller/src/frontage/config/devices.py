# SPDX-License-Identifier: Apache-2.0
"""Sections of the configuration about the switches: one ``device``, or a fleet of ``devices``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Self

from pydantic import Field, model_validator

from frontage.config.health import Checker
from frontage.config.network import Neighbor, Port, Route
from frontage.fields import Model, Name
from frontage.limits import MAX_PORT_ID


class DeviceState(StrEnum):
    """The state of a switch with regard to routers."""

    ACTIVE = "active"
    DRAINING = "draining"


ONLY_DEVICE = "switch"
"""The name of the switch if the file has one ``device`` without a name."""


class Pipeline(Model):
    p4info: Path = Field(
        description="the path of the P4Info file of the compiled P4 program, in text form", examples=["frontage.p4info.txtpb"]
    )
    # ``json`` in the file; BaseModel has a method of that name.
    json_file: Path = Field(
        alias="json", description="the path of the BMv2 JSON file of the compiled P4 program", examples=["frontage.json"]
    )

    def in_folder(self, folder: Path) -> Pipeline:
        """Return the pipeline with absolute paths, for paths relative to ``folder``."""
        return self.model_copy(
            update={"p4info": (folder / self.p4info).absolute(), "json_file": (folder / self.json_file).absolute()}
        )


class SwitchTls(Model):
    """TLS with a switch; mutual TLS with ``certificate`` and ``key``."""

    authorities: Path = Field(description="a PEM file with the authorities of the switch's certificate", examples=["ca.pem"])
    certificate: Path | None = Field(
        None, description="a PEM file with the certificate chain of the controller", examples=["controller.pem"]
    )
    key: Path | None = Field(
        None, description="a PEM file with the private key of the certificate", examples=["controller-key.pem"]
    )
    server_name: str | None = Field(
        None, min_length=1, description="the name in the switch's certificate; the host of `address` if absent", examples=["edge1"]
    )

    @model_validator(mode="after")
    def _has_both(self) -> Self:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("certificate and key must be used together: set both or neither")
        return self

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(file for file in (self.authorities, self.certificate, self.key) if file is not None)

    def in_folder(self, folder: Path) -> SwitchTls:
        """Return the settings with absolute paths, for paths relative to ``folder``."""
        files = {"authorities": self.authorities, "certificate": self.certificate, "key": self.key}
        return self.model_copy(update={name: (folder / file).absolute() for name, file in files.items() if file is not None})


class Device(Model):
    name: Name = Field(ONLY_DEVICE, description="a name of letters, digits, '.', '_', '-'", examples=["edge1"])
    address: str = Field(
        description="host:port of the switch's P4Runtime server, or unix:PATH", examples=["127.0.0.1:9559"], min_length=1
    )
    device_id: int = Field(1, ge=1, lt=1 << 64, description="the P4Runtime device id", examples=[1])
    election_id: int = Field(
        100, ge=1, lt=1 << 64, description="the first election id; a standby controller takes a lower one", examples=[100]
    )
    cpu_port: int = Field(ge=1, le=MAX_PORT_ID, description="the number of the switch's CPU port", examples=[510])
    pipes: int = Field(1, ge=1, le=4, description="the number of pipes of a Tofino chip", examples=[2])
    pipeline: Pipeline = Field(description="the compiled P4 program")
    tls: SwitchTls | None = Field(None, description="TLS with the P4Runtime server; a plain connection if absent")
    zone: Name | None = Field(
        None, description="the name of the zone of the switch, whose servers it prefers; none if absent", examples=["hall1"]
    )


class FleetDevice(Device):
    """One switch of several. Its sections replace those of the same name at the top of the file."""

    name: Name = Field(description="a name of letters, digits, '.', '_', '-', unique in the file", examples=["edge1"])
    ports: tuple[Port, ...] | None = Field(None, min_length=1, description="this switch's ports, instead of `ports`")
    routes: tuple[Route, ...] | None = Field(None, description="this switch's routes, instead of `routes`")
    neighbors: tuple[Neighbor, ...] | None = Field(None, description="the hosts on this switch's own links, instead of `neighbors`")
    health: Checker | None = Field(None, description="the checker behind a port of this switch, instead of `health`")
    state: DeviceState = Field(
        DeviceState.ACTIVE,
        description="'active', or 'draining': VIPs are not announced through this switch",
        examples=["active"],
    )

    OWN_SECTIONS: ClassVar[tuple[str, ...]] = ("ports", "routes", "neighbors", "health")

    @property
    def device(self) -> Device:
        """The switch itself, without its sections."""
        return Device.model_construct(**{name: getattr(self, name) for name in Device.model_fields})
