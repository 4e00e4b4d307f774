"""``demand.p4``: which services' handshakes are counted, and in which cells."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from frontage.config import Config
from frontage.limits import DEMAND_CELLS, MAX_REGION
from frontage.p4.entries import Action, Key, State
from frontage.state.allocation import Allocation

SERVICE = "demand.service"
TABLES = (SERVICE,)
HANDSHAKES = "demand.handshakes"
"""The counter."""
NEW_CLIENT = "new_client_t"
"""The digest."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Of one service: its first is of all who are in none of its regions."""

    base: int
    regions: int
    """Regions from 1 up to this, less one, have cells of their own."""


def measured(config: Config) -> tuple[str, ...]:
    """Names of the VIPs that are counted, in the order of their cells."""
    if config.placement is None:
        return ()
    names = {service.name for service in config.placement.services}
    return tuple(sorted(vip.name for vip in config.vips if vip.artemis is not None and vip.artemis.service in names))


def cells(config: Config) -> Mapping[str, Cells]:
    """By VIP: to each of them as many cells, a power of two."""
    names = measured(config)
    if not names:
        return {}
    room = DEMAND_CELLS // len(names)
    regions = min(1 << (room.bit_length() - 1), MAX_REGION)
    return {name: Cells(i * regions, regions) for i, name in enumerate(names)}


def cell_indices(cells: Mapping[str, Cells], regions: Collection[int]) -> list[int]:
    """Return the indices of the cells of these regions, and of clients in no region."""
    numbers = sorted({0, *regions})
    return [one.base + region for one in cells.values() for region in numbers if region < one.regions]


def entries(config: Config, allocation: Allocation) -> State:
    return {
        Key(SERVICE, (allocation.vip_ids[name],)): Action("set_counter_range", (found.base, found.regions))
        for name, found in cells(config).items()
    }
