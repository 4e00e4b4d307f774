# SPDX-License-Identifier: Apache-2.0
"""Checks of the record store."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

from frontage.config.checks.findings import Finding, unknown
from frontage.config.schema import Config


def check(config: Config) -> Iterator[Finding]:
    """Yield the problems of the record store."""
    settings = config.records
    if settings is None:
        return
    if settings.tokens is not None and settings.tls is None and not _loopback(settings.address[0]):
        what = f"clients would send tokens unencrypted to {settings.listen}"
        yield Finding(("records", "tokens"), what, "add `tls` with `certificate` and `key`, or listen on 127.0.0.1")
    if settings.dns is not None and (known := config.site_ids | settings.dns.servers.keys()):
        regions = settings.dns.regions.items()
        near = [(("records", "dns", "regions", str(net), i), site) for net, sites in regions for i, site in enumerate(sites)]
        yield from unknown(near, known, "unknown site {}")
    if settings.file is not None or config.site is not None:
        return
    what = "the own site is unknown"
    yield Finding(("records", "store"), what, "add `site` with `id` and `vtep`, or use sqlite:///FILE")


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
