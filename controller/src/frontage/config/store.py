# SPDX-License-Identifier: Apache-2.0
"""The section ``store`` of the configuration file: the store in which several controllers share the configuration and its journal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from frontage.fields import Model

MIN_LEASE = 2.0
"""Seconds. Shorter leases would expire whenever a machine is busy."""


class NatsTls(Model):
    authorities: Path | None = Field(
        None,
        description="a PEM file with the certificate authorities of the servers; those of the system if absent",
        examples=["ca.pem"],
    )
    certificate: Path | None = Field(
        None, description="a PEM file with the certificate of this controller", examples=["client.pem"]
    )
    key: Path | None = Field(None, description="a PEM file with its private key", examples=["client-key.pem"])

    def in_folder(self, folder: Path) -> NatsTls:
        """Return the settings with absolute paths."""
        files = {"authorities": self.authorities, "certificate": self.certificate, "key": self.key}
        return NatsTls(**{name: (folder / file).absolute() for name, file in files.items() if file is not None})


NatsUrl = Annotated[str, StringConstraints(pattern=r"^(nats|tls)://[^\s,@/]+$")]


class NatsStore(Model):
    servers: tuple[NatsUrl, ...] = Field(
        min_length=1, description="the servers of the cluster: nats://HOST:PORT", examples=[["nats://10.0.0.1:4222"]]
    )
    bucket: str = Field(
        "frontage",
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        description="the name of the bucket: controllers with the same bucket share a configuration",
        examples=["frontage"],
    )
    replicas: int = Field(3, description="the number of NATS servers that store each change: 1, 3 or 5", examples=[3])
    lease: float = Field(
        15.0,
        ge=MIN_LEASE,
        le=300,
        description="seconds without a renewal after which another controller takes over",
        examples=[15],
    )
    credentials: Path | None = Field(
        None, description="a file with USER:PASSWORD or with a token for the NATS servers", examples=["nats-credentials"]
    )
    tls: NatsTls | None = Field(None, description="TLS to the NATS servers; plain TCP if absent")

    def in_folder(self, folder: Path) -> NatsStore:
        """Return the settings with absolute paths."""
        return self.model_copy(
            update={
                "credentials": None if self.credentials is None else (folder / self.credentials).absolute(),
                "tls": None if self.tls is None else self.tls.in_folder(folder),
            }
        )


class Store(Model):
    nats: NatsStore = Field(description="NATS JetStream, which several controllers share")

    def in_folder(self, folder: Path) -> Store:
        """Return the settings with absolute paths."""
        return Store(nats=self.nats.in_folder(folder))
