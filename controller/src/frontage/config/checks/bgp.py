# SPDX-License-Identifier: Apache-2.0
"""Checks of the routers to which VIPs are announced."""

from __future__ import annotations

import re
from collections.abc import Iterator

from frontage.config.bgp import COMMUNITY
from frontage.config.checks.findings import Finding, duplicates, unknown_name
from frontage.config.document import Path
from frontage.config.schema import Config


def check(config: Config) -> Iterator[Finding]:
    """Yield the problems of the section ``bgp``."""
    if config.bgp is None:
        return
    neighbors = config.bgp.neighbors
    names = [own.device.name for own in config.switches]
    yield from duplicates(
        ((("bgp", "neighbors", i, "address"), neighbor.address) for i, neighbor in enumerate(neighbors)),
        "duplicate neighbor {}",
        "remove one of the two",
    )
    for i, neighbor in enumerate(neighbors):
        path: Path = ("bgp", "neighbors", i)
        if neighbor.device is None and len(names) > 1:
            yield Finding((*path, "device"), "missing", f"add the switch that the router sends to: {', '.join(names)}")
            continue
        if neighbor.device is not None and neighbor.device not in names:
            yield unknown_name((*path, "device"), "device", neighbor.device, names, "`devices`")
            continue
        if config.bgp_next_hop(neighbor) is None:
            what = f"{neighbor.address} is not on a link of the switch, so the next hop of the routes is unknown"
            yield Finding((*path, "address"), what, "add `next_hop`, an address of the switch that the router reaches")
        for field in ("source", "next_hop"):
            address = getattr(neighbor, field)
            if address is not None and address.version != neighbor.address.version:
                what = f"{address} is not an IPv{neighbor.address.version} address like that of the neighbor"
                yield Finding((*path, field), what, "use an address of the same IP version")
        for j, community in enumerate(neighbor.communities):
            if not re.match(COMMUNITY, community) or any(int(part) > 65535 for part in community.split(":")):
                what = f'invalid community "{community}"'
                yield Finding((*path, "communities", j), what, "write two numbers up to 65535, for example 64512:100")
