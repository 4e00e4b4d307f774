# SPDX-License-Identifier: Apache-2.0
"""Certificates of a testbed's servers, self-signed or signed by the testbed's CA."""

from __future__ import annotations

import subprocess
from pathlib import Path

from .nodes import NodeError


def make_certificate(directory: Path, subject: str, *extensions: str) -> None:
    """Write `certificate.pem` and `key.pem` into `directory` for `subject` (as `/CN=films`), with X.509 `extensions`.

    Raises NodeError.
    """
    options = [word for extension in extensions for word in ("-addext", extension)]
    _request(directory, subject, "key.pem", "certificate.pem", *options)


def make_authority(directory: Path) -> None:
    """Write a CA's certificate `ca.pem` and key `ca.key` into `directory`. Raises NodeError."""
    _request(directory, "/CN=ca", "ca.key", "ca.pem")


def issue_certificate(directory: Path, name: str) -> None:
    """Write `NAME.pem` and `NAME.key` for a host of this name, signed by the CA in `directory`. Raises NodeError."""
    options = ["-CA", "ca.pem", "-CAkey", "ca.key"]
    for extension in (f"subjectAltName=DNS:{name}", "basicConstraints=critical,CA:FALSE"):
        options += ["-addext", extension]
    _request(directory, f"/CN={name}", f"{name}.key", f"{name}.pem", *options)


def _request(directory: Path, subject: str, key: str, certificate: str, *options: str) -> None:
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", subject, "-keyout", key, "-out", certificate, *options]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    if done.returncode != 0:
        raise NodeError(f"openssl req failed: {done.stderr.strip()}")
