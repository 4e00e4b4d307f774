# SPDX-License-Identifier: Apache-2.0
"""Checks of the record store."""

from __future__ import annotations

from collections.abc import Iterator

from frontage.config.checks.findings import Finding, unknown
from frontage.config.schema import Config


def check(config: Config) -> Iterator[Finding]:
    """Yield the problems of the record store."""
    settings = config.records
    if settings is None:
        return
    if settings.dns is not None and (known := config.site_ids | settings.dns.servers.keys()):
        regions = settings.dns.regions.items()
        near = [(("records", "dns", "regions", str(net), i), site) for net, sites in regions for i, site in enumerate(sites)]
        yield from unknown(near, known, "unknown site {}")
    if settings.file is not None or config.site is not None:
        return
    what = "the own site is unknown"
    yield Finding(("records", "store"), what, "add `site` with `id` and `vtep`, or use sqlite:///FILE")
