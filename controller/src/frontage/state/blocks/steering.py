# SPDX-License-Identifier: Apache-2.0
"""``steering.p4``: the service addresses among the VIPs, and the site of each SID.

`frontage.state.steering` has the entries of the end-user mapping's own tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from frontage.config.sites import OwnSite, Site
from frontage.p4.entries import Action, Key, State
from frontage.state.blocks import region
from frontage.state.resolved import ResolvedVip

SERVICE = "steering.service"
DEPLOYMENT = "steering.deployment"
MAPPING = "steering.mapping"
DEFAULT_MAPPING = "steering.default_mapping"
SID_SITE = "steering.sid_site"
MAPPED = (MAPPING, DEFAULT_MAPPING, DEPLOYMENT, *region.TABLES)
"""The mapping's tables in the order of writing: the sites of a deployment precede its services and the clients of a region."""
TABLES = (SID_SITE, *MAPPED, SERVICE)

_SID_BITS = 16


def entries(own: OwnSite, sites: Sequence[Site], vips: Iterable[ResolvedVip]) -> State:
    """Return the entries. ``sites`` may or may not include this site; if not, every server's SID is an entry of its own."""
    state: State = {}
    for site in sites:
        action = Action("set_local_site") if site.id == own.id else Action("set_remote_site", (site.id,))
        for prefix in prefixes(*site.sids):
            state[Key(SID_SITE, (prefix,))] = action
    includes_own = any(site.id == own.id for site in sites)
    for vip in vips:
        if not includes_own:
            for server in vip.servers:
                state[Key(SID_SITE, ((server.config.sid, _SID_BITS),))] = Action("set_local_site")
        service = vip.config.artemis
        if service is not None:
            action = (
                Action("set_service", (own.id, service.id)) if service.dedicated_address else Action("use_dispatcher", (own.id,))
            )
            state[Key(SERVICE, (vip.id,))] = action
    return state


def prefixes(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the fewest prefixes (value, length) that cover exactly a range of SIDs."""
    while first <= last:
        free = min((first & -first).bit_length() - 1 if first else _SID_BITS, (last - first + 1).bit_length() - 1)
        yield first, _SID_BITS - free
        first += 1 << free
