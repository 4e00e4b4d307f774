# SPDX-License-Identifier: Apache-2.0
"""The section ``api`` of the configuration file: the HTTP API of the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from frontage.config.oidc import Oidc
from frontage.config.tls import Tls
from frontage.fields import Listen, Model, split_listen


class Api(Model):
    listen: Listen = Field("127.0.0.1:9480", description="host:port of the HTTP API", examples=["127.0.0.1:9480"])
    tokens: Path | None = Field(None, description="a file with bearer tokens", examples=["api-tokens.toml"])
    certificates: Path | None = Field(
        None,
        description="a file that assigns roles to names in client certificates, which `tls.clients` verifies",
        examples=["api-certificates.toml"],
    )
    oidc: Oidc | None = Field(None, description="the OpenID Connect provider whose users may log in")
    tls: Tls | None = Field(None, description="HTTPS; plain HTTP if absent")

    @property
    def address(self) -> tuple[str, int]:
        return split_listen(self.listen)

    @model_validator(mode="after")
    def _identifies_clients(self) -> Self:
        if self.tokens is None and self.certificates is None and self.oidc is None:
            raise ValueError("clients cannot authenticate: set tokens, certificates or oidc")
        if self.certificates is not None and (self.tls is None or self.tls.clients is None):
            raise ValueError("certificates requires the authorities of client certificates: set tls.clients")
        return self

    def in_folder(self, folder: Path) -> Api:
        """Return the settings with absolute paths."""
        files = {"tokens": self.tokens, "certificates": self.certificates}
        update: dict[str, object] = {name: (folder / file).absolute() for name, file in files.items() if file is not None}
        if self.oidc is not None:
            update["oidc"] = self.oidc.in_folder(folder)
        tls = None if self.tls is None else self.tls.in_folder(folder)
        return self.model_copy(update={**update, "tls": tls})
