"""What a schema cannot say of the end-user mapping."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from frontage.findings import Finding, duplicates, unknown

if TYPE_CHECKING:
    from frontage.config import Config


def check(config: Config) -> Iterator[Finding]:
    settings = config.end_users
    if settings is None:
        return
    if config.site is None:
        yield Finding(("end_users",), "the file does not say which site this is", "add `site` with `id` and `vtep`", at_key=True)
        return
    if config.mapping is not None:
        yield Finding(("mapping",), "the mapping is computed (end_users)", "remove `mapping`, or `end_users`", at_key=True)
    sites = [(("end_users", "dispatchers", i, "site"), dispatcher.site) for i, dispatcher in enumerate(settings.dispatchers)]
    yield from unknown(sites, config.site_ids, "there is no site {}")
    urls = [(("end_users", "dispatchers", i, "url"), dispatcher.url) for i, dispatcher in enumerate(settings.dispatchers)]
    yield from duplicates(urls, "dispatcher {} is listed twice", "remove one")
    names = [(("end_users", "services", i, "name"), service.name) for i, service in enumerate(settings.services)]
    yield from duplicates(names, "service {} is listed twice", "remove one")
    ids = [(("end_users", "services", i, "id"), service.id) for i, service in enumerate(settings.services) if service.id]
    yield from duplicates(ids, "service id {} is used twice", "renumber one")
    vips = {vip.artemis.name.lower(): vip.artemis for vip in config.vips if vip.artemis is not None}
    for i, service in enumerate(settings.services):
        vip = vips.get(service.name)
        if vip is not None and service.id not in (None, vip.id):
            what = f"{service.name} has another id than its VIP, {vip.id}"
            yield Finding(("end_users", "services", i, "id"), what, "give the same to both")
