"""``steering.p4``: which VIPs are service addresses, and whose the SIDs are. ``mapping.py`` fills the mapping's own tables."""

from __future__ import annotations

from collections.abc import Iterator

from frontage.config import Config
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation
from frontage.state.blocks import region

SERVICE = "steering.service"
DEPLOYMENT = "steering.deployment"
MAPPING = "steering.mapping"
DEFAULT_MAPPING = "steering.default_mapping"
SID_SITE = "steering.sid_site"
MAPPED = (MAPPING, DEFAULT_MAPPING, DEPLOYMENT, *region.TABLES)
"""In the order of writing: a deployment's sites are there before its services and before the clients of a region."""
TABLES = (SID_SITE, *MAPPED, SERVICE)

_SID_BITS = 16


def entries(config: Config, allocation: Allocation) -> State:
    state: State = {}
    if config.site is None:
        return state
    for site in config.sites:
        action = Action("set_local_site") if site.id == config.site.id else Action("set_remote_site", (site.id,))
        for prefix in prefixes(*site.sids):
            state[Key(SID_SITE, (prefix,))] = action
    if all(site.id != config.site.id for site in config.sites):
        for server in config.servers:
            state[Key(SID_SITE, ((server.sid, _SID_BITS),))] = Action("set_local_site")
    for vip in config.vips:
        if vip.artemis is not None:
            own = config.site.id
            decided = Action("set_service", (own, vip.artemis.id))
            state[Key(SERVICE, (allocation.vip_ids[vip.name],))] = (
                decided if vip.artemis.decided else Action("use_dispatcher", (own,))
            )
    return state


def prefixes(first: int, last: int) -> Iterator[tuple[int, int]]:
    """The least number of prefixes (value, length) that make up a range of SIDs."""
    while first <= last:
        free = min((first & -first).bit_length() - 1 if first else _SID_BITS, (last - first + 1).bit_length() - 1)
        yield first, _SID_BITS - free
        first += 1 << free
