"""What a schema cannot say of the record store."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

from frontage.config.checks.findings import Finding, unknown
from frontage.config.schema import Config


def check(config: Config) -> Iterator[Finding]:
    settings = config.records
    if settings is None:
        return
    if settings.tokens is not None and settings.tls is None and not _loopback(settings.address[0]):
        what = f"tokens would go in the clear to {settings.listen}, and be anybody's who listens"
        yield Finding(("records", "tokens"), what, "add `tls` with `certificate` and `key`, or listen on 127.0.0.1")
    if settings.dns is not None and (known := config.site_ids | settings.dns.servers.keys()):
        regions = settings.dns.regions.items()
        near = [(("records", "dns", "regions", str(net), i), site) for net, sites in regions for i, site in enumerate(sites)]
        yield from unknown(near, known, "there is no site {}")
    if settings.file is not None or config.site is not None:
        return
    what = "records are kept at sites, and the file does not say which one this is"
    yield Finding(("records", "store"), what, "add `site` with `id` and `vtep`, or use sqlite:///FILE")


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
