# SPDX-License-Identifier: Apache-2.0
"""Users of an OpenID Connect provider: verifies their tokens (OpenID Connect Core 1.0, RFC 7519, RFC 8725).

The controller fetches the provider's keys when a token needs them, and caches them, so users can log in while the provider is down.
Tokens with unknown keys cause at most one request to the provider every few seconds, however many clients send such tokens.
"""

from __future__ import annotations

import logging
import ssl
import threading
import time
from collections.abc import Mapping
from typing import Any

import httpx
import jwt

from frontage.api.access import Caller, Role
from frontage.api.problems import UnauthorizedError
from frontage.changes.history import Author
from frontage.config.oidc import Oidc

log = logging.getLogger(__name__)

FETCH_INTERVAL = 5.0
"""Seconds between requests for keys, at least."""
_FETCH_TIMEOUT = 5.0
_MAX_AGE = 3600.0
"""Seconds after which keys are fetched again, so that withdrawn keys become invalid."""


class KeySet:
    """The public keys of a provider, by key id."""

    def __init__(self, settings: Oidc):
        self._settings = settings
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._fetched = self._tried = float("-inf")
        self._lock = threading.Lock()
        self.fetches = 0
        """Number of requests for keys."""
        self.error: str | None = None
        """Why the last request for keys failed."""

    def find(self, key_id: str | None) -> jwt.PyJWK | None:
        """Return a key; None if the provider has no such key."""
        now = time.monotonic()
        if (key_id not in self._keys or now - self._fetched > _MAX_AGE) and now - self._tried > FETCH_INTERVAL:
            with self._lock:
                if time.monotonic() - self._tried > FETCH_INTERVAL:
                    self._fetch()
        return self._keys.get(key_id)

    def _fetch(self) -> None:
        self.fetches += 1
        try:
            self._keys = self._download()
        except (httpx.HTTPError, jwt.PyJWTError, ssl.SSLError, OSError, ValueError, TypeError, KeyError) as error:
            self.error = f"api.oidc.issuer {self._settings.issuer}: cannot fetch keys: {error}: check the issuer"
            log.warning("%s", self.error)
        else:
            self.error, self._fetched = None, time.monotonic()
        self._tried = time.monotonic()

    def _download(self) -> dict[str | None, jwt.PyJWK]:
        settings = self._settings
        context = ssl.create_default_context(cafile=settings.authorities)
        with httpx.Client(verify=context, timeout=_FETCH_TIMEOUT) as client:
            found = client.get(f"{settings.issuer.rstrip('/')}/.well-known/openid-configuration").raise_for_status().json()
            if found["issuer"] != settings.issuer:
                raise ValueError(f"its discovery document has the issuer {found['issuer']}")
            keys = client.get(found["jwks_uri"]).raise_for_status().json()["keys"]
        result: dict[str | None, jwt.PyJWK] = {}
        for key in keys:
            if key.get("use", "sig") != "sig":
                continue
            try:
                result[key.get("kid")] = jwt.PyJWK(key)
            except jwt.PyJWTError:
                continue  # a type of key that no permitted algorithm uses
        return result


class OidcUsers:
    """Finds callers by their tokens."""

    def __init__(self, settings: Oidc):
        self.settings = settings
        self.keys = KeySet(settings)

    def caller(self, token: str, origin: str) -> Caller:
        """Return the caller of a token. Raises UnauthorizedError."""
        settings = self.settings
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in settings.algorithms:
                permitted = ", ".join(settings.algorithms)
                raise UnauthorizedError(f"invalid token: the algorithm {header.get('alg')!r} is not permitted: use {permitted}")
            key = self.keys.find(header.get("kid"))
            if key is None:
                why = self.keys.error or f"{settings.issuer} does not publish it"
                raise UnauthorizedError(f"invalid token: unknown key {header.get('kid')!r}: {why}: get a new token")
            claims = jwt.decode(
                token,
                key.key,
                algorithms=[header["alg"]],
                audience=settings.audience,
                issuer=settings.issuer,
                leeway=settings.clock_skew,
                options={"require": ["exp", "iat", "iss", "aud"]},
            )
        except (jwt.PyJWTError, TypeError, ValueError) as error:
            raise UnauthorizedError(f"invalid token: {error}: get a new token") from None
        return Caller(Author(f"oidc:{self._subject(claims)}", origin), self._role(claims))

    def _subject(self, claims: Mapping[str, Any]) -> str:
        subject = claims.get(self.settings.subject_claim)
        if not isinstance(subject, str) or not subject:
            raise UnauthorizedError(f"invalid token: missing claim {self.settings.subject_claim!r}: correct api.oidc.subject_claim")
        return subject[:256]

    def _role(self, claims: Mapping[str, Any]) -> Role:
        """Return the highest of the caller's roles."""
        found = claims.get(self.settings.role_claim)
        values = found if isinstance(found, list) else [found]
        names = self.settings.roles if self.settings.roles is not None else {role.value: role.value for role in Role}
        roles = {names[value] for value in values if isinstance(value, str) and value in names}
        held = [role for role in Role if role.value in roles]
        if not held:
            raise UnauthorizedError(f"invalid token: the claim {self.settings.role_claim!r} has no role: ask your administrator")
        return held[-1]
