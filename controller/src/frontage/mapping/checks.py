"""Checks of the sections ``end_users`` and ``placement`` that a schema cannot express."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from frontage.config.checks.findings import Finding, duplicates, unknown

if TYPE_CHECKING:
    from frontage.config.schema import Config


def check_end_users(config: Config) -> Iterator[Finding]:
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


def check_placement(config: Config) -> Iterator[Finding]:
    settings = config.placement
    if settings is None:
        return
    if config.end_users is None or config.site is None:
        what = "regions of clients and distances from them come from the computed mapping, and there is none"
        yield Finding(("placement",), what, "add `site` and `end_users`", at_key=True)
        return
    sites = [(("placement", "sites", i, "site"), one.site) for i, one in enumerate(settings.sites)]
    yield from unknown(sites, config.site_ids, "there is no site {}")
    yield from duplicates(sites, "site {} is listed twice", "remove one")
    names = [(("placement", "services", i, "name"), one.name) for i, one in enumerate(settings.services)]
    yield from duplicates(names, "service {} is listed twice", "remove one")
    services = {vip.artemis.service for vip in config.vips if vip.artemis is not None}
    for i, service in enumerate(settings.services):
        if service.name not in services:
            fix = f"name one of: {', '.join(sorted(services)) or 'none is defined yet'}; or give a VIP `artemis` of that name"
            yield Finding(("placement", "services", i, "name"), f"no VIP is the service {service.name}", fix)
    usable = sum(one.capacity > 0 for one in settings.sites)
    if settings.min_replicas > usable:
        what = f"{usable} sites with capacity cannot hold {settings.min_replicas} replicas of a service"
        path = ("placement", "min_replicas") if "min_replicas" in settings.model_fields_set else ("placement", "sites")
        yield Finding(path, what, f"give min_replicas: {max(usable, 1)}, or add sites")
    if settings.max_replicas is not None and settings.max_replicas < settings.min_replicas:
        what = f"the most replicas, {settings.max_replicas}, are fewer than the least, {settings.min_replicas}"
        yield Finding(("placement", "max_replicas"), what, f"give at least {settings.min_replicas}")
    if settings.share * settings.requests <= 1:
        what = f"one report in {settings.requests} requests leaves nothing of {settings.share:g} of them for reconfigurations"
        path = ("placement", "share") if "share" in settings.model_fields_set else ("placement", "requests")
        yield Finding(path, what, "give a larger share or more requests")
