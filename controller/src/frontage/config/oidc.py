# SPDX-License-Identifier: Apache-2.0
"""The section ``api.oidc`` of the configuration file: users of an OpenID Connect provider."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from frontage.fields import Model

Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Only algorithms with public keys, because a shared secret would let every verifier issue tokens."""


class Oidc(Model):
    issuer: str = Field(description="the issuer of the tokens, an https URL", examples=["https://login.example"])
    audience: str = Field(min_length=1, description="the audience that tokens must have", examples=["frontage"])
    role_claim: str = Field(
        "frontage_role", min_length=1, description="the claim that contains the role or a list of roles", examples=["groups"]
    )
    roles: dict[str, Literal["viewer", "operator", "admin"]] | None = Field(
        None,
        description="a map from values of the claim to roles; by default, the values are the roles",
        examples=[{"noc": "operator"}],
    )
    subject_claim: str = Field(
        "sub", min_length=1, description="the claim that the journal records as the author", examples=["email"]
    )
    algorithms: tuple[Algorithm, ...] = Field(
        ("RS256", "ES256", "EdDSA"), min_length=1, description="the permitted signature algorithms", examples=[["ES256"]]
    )
    clock_skew: float = Field(30, ge=0, le=300, description="the tolerated clock difference in seconds", examples=[30])
    authorities: Path | None = Field(
        None, description="a PEM file with the authorities of the issuer's certificate; those of the system if absent"
    )

    @field_validator("issuer")
    @classmethod
    def _is_safe(cls, value: str) -> str:
        is_local = value.startswith(("http://127.0.0.1", "http://[::1]", "http://localhost"))
        if not value.startswith("https://") and not is_local:
            raise ValueError("invalid issuer {}: use an https URL, because keys come from there")
        return value

    def in_folder(self, folder: Path) -> Oidc:
        """Return the settings with absolute paths."""
        authorities = None if self.authorities is None else (folder / self.authorities).absolute()
        return self.model_copy(update={"authorities": authorities})
