# SPDX-License-Identifier: Apache-2.0
"""Authentication of clients on the TCP address: by token, by OpenID Connect, or by client certificate."""

from __future__ import annotations

from pathlib import Path

from fastapi import Request

from frontage.api.access import Caller, Role
from frontage.api.oidc import OidcUsers
from frontage.api.problems import UnauthorizedError
from frontage.changes.history import Author
from frontage.client_certificates import ClientCertificates
from frontage.config.api import Api
from frontage.tokens import Tokens, UnknownTokenError


class Authentication:
    """The currently valid tokens, certificates and OpenID Connect users. `load` replaces them when files change."""

    def __init__(self) -> None:
        self._settings: Api | None = None
        self._tokens: Tokens[Role] | None = None
        self._certificates: ClientCertificates[Role] | None = None
        self._oidc: OidcUsers | None = None

    def load(self, settings: Api) -> None:
        """Read the files of the settings. Raises TokenFileError and ClientCertificatesError, and then changes nothing."""
        tokens = None if settings.tokens is None else Tokens.load(settings.tokens, Role, "frontage token")
        file = settings.certificates
        certificates = None if file is None else ClientCertificates.load(file, Role)
        if settings.oidc is None:
            self._oidc = None
        elif self._oidc is None or self._oidc.settings != settings.oidc:
            self._oidc = OidcUsers(settings.oidc)
        self._settings, self._tokens, self._certificates = settings, tokens, certificates

    @property
    def servers(self) -> frozenset[str]:
        """The servers whose machines have certificates."""
        return frozenset() if self._certificates is None else self._certificates.servers

    @staticmethod
    def files(settings: Api) -> list[Path]:
        """Return the files that `load` reads."""
        return [file for file in (settings.tokens, settings.certificates) if file is not None]

    def __call__(self, request: Request) -> Caller:
        """Return the sender of a request. Raises UnauthorizedError."""
        origin = "unknown" if request.client is None else request.client.host
        authorization = request.headers.get("Authorization")
        names: tuple[str, ...] = getattr(request.state, "certificate_names", ())
        if authorization is None and names and self._certificates is not None:
            grant = self._certificates.grant(names)
            if grant is None:
                raise UnauthorizedError(f"no role for the certificate of {', '.join(names)}: add the name to api.certificates")
            return Caller(Author(f"certificate:{grant.name}", origin), grant.may, grant.server)
        if authorization is not None and self._oidc is not None and _is_jwt(authorization):
            return self._oidc.caller(authorization.split()[-1], origin)
        if self._tokens is None:
            wanted = "a token of the OpenID Connect provider" if self._oidc is not None else "a client certificate"
            raise UnauthorizedError(f"unknown client: send {wanted}")
        try:
            bearer = self._tokens.bearer(authorization)
        except UnknownTokenError as error:
            raise UnauthorizedError(f"{error}: see `frontage token --help`") from None
        return Caller(Author(bearer.name, origin), bearer.may)


def _is_jwt(authorization: str) -> bool:
    """Return whether a bearer token has the form of a JSON web token, with dots, which tokens of files do not contain."""
    scheme, _, token = authorization.strip().partition(" ")
    return scheme.lower() == "bearer" and token.count(".") == 2
