# SPDX-License-Identifier: Apache-2.0
"""Certificates in PEM files: their names and their validity."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import NameOID

_SECONDS_PER_DAY = 86_400.0


class CertificateError(Exception):
    """A certificate cannot be used; the message names the file, the fault and the fix."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """The names and the validity of a certificate."""

    names: tuple[str, ...]
    """The DNS names, URIs and e-mail addresses (subjectAltName), or else the common name."""
    not_before: datetime
    not_after: datetime

    @property
    def days_left(self) -> float:
        """Days until the certificate expires; negative afterwards."""
        return (self.not_after - datetime.now(UTC)).total_seconds() / _SECONDS_PER_DAY

    def check(self, file: Path) -> None:
        """Check that the certificate of a file is valid now. Raises CertificateError."""
        if self.days_left < 0:
            raise CertificateError(f"{file}: the certificate expired on {self.not_after:%Y-%m-%d %H:%M} UTC: renew it")
        if self.not_before > datetime.now(UTC):
            fix = "correct the clock, or reissue the certificate"
            raise CertificateError(f"{file}: the certificate is not valid before {self.not_before:%Y-%m-%d %H:%M} UTC: {fix}")


def load(file: Path) -> Certificate:
    """Return the first certificate of a PEM file. Raises CertificateError."""
    try:
        return describe(x509.load_pem_x509_certificate(file.read_bytes()))
    except OSError as error:
        raise CertificateError(f"{file}: cannot load a certificate: {error}") from None
    except ValueError:
        raise CertificateError(f"{file}: cannot load a certificate: missing certificate: use a PEM file") from None


def parse(der: bytes) -> Certificate:
    """Return a certificate in DER. Raises ValueError."""
    return describe(x509.load_der_x509_certificate(der))


def describe(found: x509.Certificate) -> Certificate:
    """Return the names and the validity of a certificate."""
    try:
        alternatives = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        alternatives = x509.SubjectAlternativeName([])
    kinds = (x509.DNSName, x509.UniformResourceIdentifier, x509.RFC822Name)
    names = tuple(name.value for name in alternatives if isinstance(name, kinds))
    if not names:
        names = tuple(str(attribute.value) for attribute in found.subject.get_attributes_for_oid(NameOID.COMMON_NAME))
    return Certificate(names, found.not_valid_before_utc, found.not_valid_after_utc)
