# SPDX-License-Identifier: Apache-2.0
"""TLS with a switch: the certificates of the connection, and the diagnosis of failed connections."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from pathlib import Path

import grpc

from frontage.certificates import Certificate, CertificateError, load
from frontage.config.devices import Device, SwitchTls
from frontage.p4.errors import TlsFailedError
from frontage.stamps import Stamp, stamp

log = logging.getLogger(__name__)

_DIAGNOSIS_TIMEOUT = 3.0
"""Timeout of a diagnosis in seconds."""

_VERIFICATION = {
    9: ("is not valid yet", "correct the clock of the controller, or reissue the certificate"),
    10: ("has expired", "renew it on the switch"),
    18: ("is self-signed", "add it to device.tls.authorities"),
    19: ("is from an unknown authority", "add the authority to device.tls.authorities"),
    20: ("is from an unknown authority", "add the authority to device.tls.authorities"),
    21: ("is from an unknown authority", "add the authority to device.tls.authorities"),
    62: ("is for another name", "set device.tls.server_name to a name in the certificate"),
    64: ("is for another name", "set device.tls.server_name to a name in the certificate"),
}
"""Faults of the switch's certificate and their fixes, by the code of OpenSSL's verification (X509_V_ERR)."""

_ALERTS = {
    "CERTIFICATE_EXPIRED": ("as expired", "renew it, or correct the clocks"),
    "BAD_CERTIFICATE": ("as invalid, or not valid yet", "reissue it, or correct the clocks"),
    "CERTIFICATE_UNKNOWN": ("as invalid", "issue it for client authentication"),
    "UNSUPPORTED_CERTIFICATE": ("as unsupported", "issue it for client authentication"),
    "CERTIFICATE_REQUIRED": ("as missing", "set device.tls.certificate and device.tls.key"),
    "HANDSHAKE_FAILURE": ("as missing", "set device.tls.certificate and device.tls.key"),
    "UNKNOWN_CA": ("as issued by an unknown authority", "add the authority to --grpc-server-cacert of the switch"),
    "DECRYPT_ERROR": ("as issued by another authority of the same name", "use the authority that the switch knows"),
    "ACCESS_DENIED": ("as not permitted", "permit its name on the switch"),
}
"""Reasons why a switch rejects the controller's certificate, with the fixes, by a part of the TLS alert (RFC 8446, section 6.2)."""


class Credentials:
    """The certificates of connections with one switch. The next connection uses replaced files if they are valid."""

    def __init__(self, settings: SwitchTls):
        self.settings = settings
        self.error: str | None = None
        """The reason why the current files cannot be used."""
        self._stamps: tuple[Stamp | None, ...] | None = None
        self._valid: grpc.ChannelCredentials | None = None
        self._certificate: Certificate | None = None

    @property
    def days_left(self) -> float | None:
        """Days until the certificate in use expires; None without one."""
        return None if self._certificate is None else self._certificate.days_left

    def refresh(self) -> None:
        """Read the files if they have changed. If they are invalid, set `error` and keep the last valid ones."""
        stamps = tuple(stamp(file) for file in self.settings.files)
        if stamps == self._stamps:
            return
        self._stamps = stamps
        try:
            self._valid, self._certificate = _load(self.settings)
        except CertificateError as error:
            self.error = str(error)
            log.error("%s%s", error, "" if self._valid is None else "; the previous files remain in use")
        else:
            self.error = None

    def channel_credentials(self) -> grpc.ChannelCredentials:
        """Return the credentials for a new connection. Raises TlsFailedError if no valid files have been read."""
        self.refresh()
        if self._valid is None:
            raise TlsFailedError(self.error or "device.tls: no certificates")
        return self._valid

    async def explain(self, address: str) -> str | None:
        """Return why a TLS connection to a switch fails, with the fix; None if TLS is not the reason."""
        return await asyncio.to_thread(_diagnose, address, self.settings)


def credentials_of(device: Device) -> Credentials | None:
    """Return the certificates for a switch; None without TLS."""
    return None if device.tls is None else Credentials(device.tls)


def _load(settings: SwitchTls) -> tuple[grpc.ChannelCredentials, Certificate | None]:
    """Return the credentials and the controller's certificate. Raises CertificateError."""
    certificate = None
    if settings.certificate is not None:
        certificate = load(settings.certificate)
        certificate.check(settings.certificate)
    _context(settings)  # checks that certificate and key match
    read = [None if file is None else file.read_bytes() for file in (settings.authorities, settings.key, settings.certificate)]
    return grpc.ssl_channel_credentials(*read), certificate


def _context(settings: SwitchTls) -> ssl.SSLContext:
    """Return the context of a client with these files. Raises CertificateError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["h2"])
    try:
        context.load_verify_locations(settings.authorities)
    except (OSError, ssl.SSLError) as error:
        raise CertificateError(f"{settings.authorities}: cannot load the authorities: {error}: use a PEM file") from None
    if settings.certificate is not None and settings.key is not None:
        try:
            context.load_cert_chain(settings.certificate, settings.key)
        except (OSError, ssl.SSLError) as error:
            what = f"cannot load certificate and key: {error}"
            raise CertificateError(f"{settings.certificate}, {settings.key}: {what}: use PEM files of a matching pair") from None
    return context


def _diagnose(address: str, settings: SwitchTls) -> str | None:
    host = address.removeprefix("unix:") if address.startswith("unix:") else address.rpartition(":")[0].strip("[]")
    name = settings.server_name or ("localhost" if address.startswith("unix:") else host)
    try:
        with _connect(address) as plain, _context(settings).wrap_socket(plain, server_hostname=name) as secure:
            secure.recv(1)  # a server rejects certificates of clients after the handshake (TLS 1.3)
    except ssl.SSLCertVerificationError as error:
        what, fix = _VERIFICATION.get(error.verify_code, (f"is invalid: {error.verify_message}", "reissue it"))
        wanted = f', not for "{name}"' if error.verify_code in (62, 64) else ""
        return f"device.address {address}: the switch's certificate {what}{wanted}: {fix}"
    except ssl.SSLError as error:
        return f"device.address {address}: {_rejection(error, settings.certificate)}"
    except (OSError, CertificateError):
        return None
    return None


def _rejection(error: ssl.SSLError, certificate: Path | None) -> str:
    reason = error.reason or str(error)
    for alert, (why, fix) in _ALERTS.items():
        if alert in reason:
            return f"the switch rejects the controller's certificate {certificate or ''} {why}: {fix}".replace("  ", " ")
    return f"TLS fails: {reason}: start the switch with TLS (--grpc-server-ssl), or remove device.tls"


def _connect(address: str) -> socket.socket:
    if address.startswith("unix:"):
        plain = socket.socket(socket.AF_UNIX)
        plain.settimeout(_DIAGNOSIS_TIMEOUT)
        plain.connect(address.removeprefix("unix:").removeprefix("//"))
        return plain
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), _DIAGNOSIS_TIMEOUT)
