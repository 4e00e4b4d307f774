# SPDX-License-Identifier: Apache-2.0
"""Describes sites, and the end-user mapping that steers clients to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from frontage.config import Config
from frontage.state.steering import EndUserMapping

MAX_PREFIXES = 500
"""Maximum number of client prefixes and choices in a description."""


def describe_sites(config: Config, mapping: EndUserMapping, out: Collection[int]) -> dict[str, Any]:
    """Return the sites, the services and the configured or computed mapping.

    ``out`` are the ids of the sites whose dispatchers do not answer.
    """
    own = None if config.site is None else config.site.id
    regions = _regions_by_site(mapping, own)
    services = []
    for vip in config.vips:
        if vip.artemis is None:
            continue
        deployment = mapping.deployments.get(vip.artemis.id)
        best = Counter[int]() if deployment is None else regions[deployment]
        services.append(
            {
                "vip": vip.name,
                "name": vip.artemis.name,
                "id": vip.artemis.id,
                "deployment": deployment,
                "regions_by_site": [{"site": site, "regions": count} for site, count in sorted(best.items())],
            }
        )
    choices = [
        {"deployment": deployment, "region": region, "sites": list(sites)}
        for (deployment, region), sites in sorted(mapping.choices.items())[:MAX_PREFIXES]
    ]
    prefixes = [{"prefix": str(prefix), "region": region} for prefix, region in list(mapping.regions.items())[:MAX_PREFIXES]]
    return {
        "own": own,
        "computed": config.end_users is not None,
        "sites": [
            {
                "id": site.id,
                "name": site.name,
                "endpoint": str(site.vtep),
                "sids": list(site.sids),
                "tunnel": str(site.tunnel),
                "dispatchers": [str(address) for address in site.dispatchers],
                "location": None if site.location is None else site.location.model_dump(),
                "out": site.id in out,
            }
            for site in config.sites
        ],
        "services": services,
        "prefixes": prefixes,
        "prefix_count": len(mapping.regions),
        "choices": choices,
        "choice_count": len(mapping.choices),
    }


def _regions_by_site(mapping: EndUserMapping, own: int | None) -> dict[int, Counter[int]]:
    """Return the number of regions for which each site is the best, by deployment. The clients in no region count as one.

    A region without a choice has that of region 0, or else the site where its clients enter, which is the own one here.
    """
    regions = {0, *mapping.regions.values()}
    found: dict[int, Counter[int]] = {deployment: Counter() for deployment in mapping.deployments.values()}
    for (deployment, region), sites in mapping.choices.items():
        if deployment in found and region in regions:
            found[deployment][sites[0]] += 1
    for deployment, counts in found.items():
        default = mapping.choices.get((deployment, 0), () if own is None else (own,))
        rest = len(regions) - counts.total()
        if default and rest:
            counts[default[0]] += rest
    return found
