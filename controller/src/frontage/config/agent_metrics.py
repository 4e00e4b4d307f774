# SPDX-License-Identifier: Apache-2.0
"""The field ``servers[].metrics`` of the configuration: where the agent of a server exports its metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from frontage.fields import Model

MAX_URL = 2048


def check_url(value: str) -> str:
    """Return the URL if the controller can read it. Raises ValueError."""
    if len(value) > MAX_URL or not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("invalid URL {}")
    try:
        parts = urlsplit(value)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"invalid URL {{}}: {error}") from None
    if parts.scheme not in ("http", "https"):
        raise ValueError("invalid URL {}: neither http nor https")
    if not host or port == 0:
        raise ValueError(f"invalid URL {{}}: invalid {'port' if host else 'host'}")
    # Everybody who reads the configuration or an error would see a password.
    if parts.username is not None or parts.password is not None:
        raise ValueError("invalid URL: it contains a user name")
    if parts.fragment:
        raise ValueError("invalid URL {}: it has a fragment")
    return value


class AgentMetrics(Model):
    """The metrics of a server's agent. In the file, the URL alone may stand for the mapping."""

    url: Annotated[str, AfterValidator(check_url)] = Field(
        description="the http or https URL of the Prometheus metrics of the server's agent",
        examples=["http://10.0.1.1:9153/metrics"],
    )
    ca_file: Path | None = Field(None, description="the path of the CA certificates; the system's if absent", examples=["ca.pem"])

    @model_validator(mode="before")
    @classmethod
    def _from_url(cls, value: object) -> object:
        return {"url": value} if isinstance(value, str) else value

    def in_folder(self, folder: Path) -> AgentMetrics:
        """Return the settings with absolute paths."""
        return self if self.ca_file is None else self.model_copy(update={"ca_file": (folder / self.ca_file).absolute()})
