# SPDX-License-Identifier: Apache-2.0
"""A certificate authority for tests, whose certificates can have any names and any period of validity."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Issues certificates into a folder."""

    def __init__(self, folder: Path, name: str = "ca"):
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(self._name, self._name, self._key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(days=9)).not_valid_after(now + timedelta(days=9))
        certificate = builder.add_extension(x509.BasicConstraints(True, None), True).sign(self._key, hashes.SHA256())
        self.pem = folder / f"{name}.pem"
        self.pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, file: str, name: str, *, days: tuple[float, float] = (-1, 1)) -> tuple[Path, Path]:
        """Write FILE.pem and FILE-key.pem for a DNS name or an IP address. ``days``: the validity, counted from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        general = x509.IPAddress(ip_address(name)) if name[0].isdigit() else x509.DNSName(name)
        builder = x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now + timedelta(days=days[0])).not_valid_after(now + timedelta(days=days[1]))
        certificate = builder.add_extension(x509.SubjectAlternativeName([general]), False).sign(self._key, hashes.SHA256())
        pem, private = self._folder / f"{file}.pem", self._folder / f"{file}-key.pem"
        private.write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        )
        pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return pem, private
