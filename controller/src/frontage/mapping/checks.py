# SPDX-License-Identifier: Apache-2.0
"""Checks of the sections ``end_users`` and ``placement`` that a schema cannot express."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from frontage.config.checks.findings import Finding, duplicates, unknown

if TYPE_CHECKING:
    from frontage.config.schema import Config


def check_end_users(config: Config) -> Iterator[Finding]:
    """Return the problems of the section ``end_users``."""
    settings = config.end_users
    if settings is None:
        return
    if config.site is None:
        yield Finding(
            ("end_users",), "a computed mapping needs to know which site this is", "add `site` with `id` and `vtep`", at_key=True
        )
        return
    if config.mapping is not None:
        yield Finding(("mapping",), "the mapping is already computed by end_users", "remove `mapping`, or `end_users`", at_key=True)
    sites = [(("end_users", "dispatchers", i, "site"), dispatcher.site) for i, dispatcher in enumerate(settings.dispatchers)]
    yield from unknown(sites, config.site_ids, "unknown site {}")
    urls = [(("end_users", "dispatchers", i, "url"), dispatcher.url) for i, dispatcher in enumerate(settings.dispatchers)]
    yield from duplicates(urls, "dispatcher {} is listed twice", "remove one")
    names = [(("end_users", "services", i, "name"), service.name) for i, service in enumerate(settings.services)]
    yield from duplicates(names, "service {} is listed twice", "remove one")
    ids = [(("end_users", "services", i, "id"), service.id) for i, service in enumerate(settings.services) if service.id]
    yield from duplicates(ids, "service id {} is used twice", "renumber one")
    vips = {vip.artemis.service: vip.artemis for vip in config.vips if vip.artemis is not None}
    for i, service in enumerate(settings.services):
        vip = vips.get(service.name)
        if vip is not None and service.id not in (None, vip.id):
            what = f"{service.name} has another id than its VIP, which has {vip.id}"
            yield Finding(("end_users", "services", i, "id"), what, "give both the same id")


def check_placement(config: Config) -> Iterator[Finding]:
    """Return the problems of the section ``placement``."""
    settings = config.placement
    if settings is None:
        return
    if config.end_users is None or config.site is None:
        what = "placement needs the computed end-user mapping"
        yield Finding(("placement",), what, "add `site` and `end_users`", at_key=True)
        return
    sites = [(("placement", "sites", i, "site"), one.site) for i, one in enumerate(settings.sites)]
    yield from unknown(sites, config.site_ids, "unknown site {}")
    yield from duplicates(sites, "site {} is listed twice", "remove one")
    names = [(("placement", "services", i, "name"), one.name) for i, one in enumerate(settings.services)]
    yield from duplicates(names, "service {} is listed twice", "remove one")
    services = {vip.artemis.service for vip in config.vips if vip.artemis is not None}
    for i, service in enumerate(settings.services):
        if service.name not in services:
            fix = f"use one of: {', '.join(sorted(services)) or 'none is defined yet'}; or give a VIP `artemis` with that name"
            yield Finding(("placement", "services", i, "name"), f"no VIP has the Artemis name {service.name}", fix)
    usable = sum(one.capacity > 0 for one in settings.sites)
    if settings.min_replicas > usable:
        what = f"{settings.min_replicas} replicas of a service do not fit at {usable} sites with capacity"
        path = ("placement", "min_replicas") if "min_replicas" in settings.model_fields_set else ("placement", "sites")
        yield Finding(path, what, f"set min_replicas: {max(usable, 1)}, or add sites")
    if settings.max_replicas is not None and settings.max_replicas < settings.min_replicas:
        what = f"max_replicas, {settings.max_replicas}, is below min_replicas, {settings.min_replicas}"
        yield Finding(("placement", "max_replicas"), what, f"set at least {settings.min_replicas}")
    if settings.share * settings.requests <= 1:
        what = f"a share of {settings.share:g} with one report per {settings.requests} requests leaves no messages for reconfigurations"
        path = ("placement", "share") if "share" in settings.model_fields_set else ("placement", "requests")
        yield Finding(path, what, "set a larger share, or more requests")
