# SPDX-License-Identifier: Apache-2.0
"""Checks of HTTP servers: tokens must not travel unencrypted."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

from frontage.config.checks.findings import Finding
from frontage.config.schema import Config


def check(config: Config) -> Iterator[Finding]:
    """Yield a problem for each server to which clients would send tokens without TLS."""
    for name, settings in (("records", config.records), ("api", config.api)):
        if settings is None or settings.tls is not None or _loopback(settings.address[0]):
            continue
        for kind in ("tokens", "oidc"):
            if getattr(settings, kind, None) is not None:
                what = f"clients would send tokens unencrypted to {settings.listen}"
                yield Finding((name, kind), what, "add `tls` with `certificate` and `key`, or listen on 127.0.0.1")


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
