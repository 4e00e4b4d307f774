"""Certificates of worlds' servers, signed by themselves."""

from __future__ import annotations

import subprocess
from pathlib import Path

from .nodes import NodeError


def make_certificate(directory: Path, subject: str, *extensions: str) -> None:
    """Write `certificate.pem` and `key.pem` into `directory`: for `subject` (as `/CN=films`), with X.509 `extensions`.

    Raises NodeError.
    """
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", subject, "-keyout", "key.pem", "-out", "certificate.pem"]
    for extension in extensions:
        command += ["-addext", extension]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    if done.returncode != 0:
        raise NodeError(f"openssl made no certificate: {done.stderr.strip()}")
