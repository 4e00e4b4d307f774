# SPDX-License-Identifier: Apache-2.0
"""The certificate of an HTTP server."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from frontage.fields import Model


class Tls(Model):
    certificate: Path = Field(description="a PEM file with the certificate chain of the server", examples=["server.pem"])
    key: Path = Field(description="a PEM file with the private key", examples=["server-key.pem"])
    clients: Path | None = Field(
        None,
        description="a PEM file with certificate authorities. Every client must then present a certificate from one of them, "
        "or, if `certificates` is set, a token",
        examples=["ca.pem"],
    )

    def in_folder(self, folder: Path) -> Tls:
        """Return the settings with absolute paths."""
        clients = None if self.clients is None else (folder / self.clients).absolute()
        return Tls(certificate=(folder / self.certificate).absolute(), key=(folder / self.key).absolute(), clients=clients)
