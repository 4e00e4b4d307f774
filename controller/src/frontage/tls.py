# SPDX-License-Identifier: Apache-2.0
"""TLS contexts of HTTP servers."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

from frontage.certificates import CertificateError, load
from frontage.config.tls import Tls


class TlsError(Exception):
    """A certificate, key or list of authorities cannot be used; the message names the file."""


_FIXES = {
    "certificate has expired": "renew the certificate of the server",
    "certificate is not yet valid": "correct the clock of this machine",
    "IP address mismatch": "use a name in the certificate of the server",
    "Hostname mismatch": "use a name in the certificate of the server",
    "self-signed certificate": "specify its authority with --authorities",
    "unable to get local issuer": "specify its authority with --authorities",
    "CERTIFICATE_REQUIRED": "the server requires a client certificate: use --certificate",
    "ALERT_UNKNOWN_CA": "your certificate is from an authority that the server does not know: see api.tls.clients",
    "ALERT_CERTIFICATE_EXPIRED": "your certificate has expired: renew it",
    "ALERT_BAD_CERTIFICATE": "the server rejects your certificate: reissue it",
    # The controller closes the TLS connection without an alert when it rejects a certificate.
    "Connection reset by peer": "the server may reject your certificate: compare its authority with api.tls.clients",
}
"""How to correct faults, by a part of OpenSSL's message."""


_VAGUE = ("", "All connection attempts failed")
"""Texts of errors whose cause says more."""


def explain(error: BaseException, fixes: Mapping[str, str] = _FIXES) -> str:
    """Return the text of a failed request, with the fix if TLS failed. ``fixes`` has them by a part of OpenSSL's message."""
    texts = []
    cause: BaseException | None = error
    while cause is not None:
        texts.append(str(cause))
        cause = cause.__cause__ or cause.__context__
    text = next((text for text in texts if text not in _VAGUE), texts[0] or type(error).__name__)
    for part, fix in fixes.items():
        if found := next((text for text in texts if part in text), None):
            return f"{found}: {fix}"
    return text


def server_context(tls: Tls, *, needs_certificates: bool = True) -> ssl.SSLContext:
    """Return the TLS context of a server. Raises TlsError.

    With ``tls.clients``, client certificates are required or optional.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_certificate(context, tls)
    if tls.clients is not None:
        try:
            context.load_verify_locations(tls.clients)
        except (OSError, ssl.SSLError) as error:
            raise TlsError(f"{tls.clients}: cannot load the authorities: {error}") from None
        context.verify_mode = ssl.CERT_REQUIRED if needs_certificates else ssl.CERT_OPTIONAL
    return context


def load_certificate(context: ssl.SSLContext, tls: Tls) -> None:
    """Load the certificate and key. Even a context in use passes them to new connections. Raises TlsError."""
    try:
        load(tls.certificate).check(tls.certificate)
    except CertificateError as error:
        raise TlsError(str(error)) from None
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise TlsError(f"{tls.certificate}, {tls.key}: cannot load certificate and key: {error}") from None
