# SPDX-License-Identifier: Apache-2.0
"""``demand.p4``: the services whose handshakes are counted, and their counter cells."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from frontage.config import Config
from frontage.limits import DEMAND_CELLS, MAX_REGION
from frontage.p4.entries import Action, Key, State

SERVICE = "demand.service"
TABLES = (SERVICE,)
HANDSHAKES = "demand.handshakes"
"""Name of the counter."""
NEW_CLIENT = "new_client_t"
"""Name of the digest."""


@dataclass(frozen=True, slots=True)
class Cells:
    """The counter cells of one service. The first counts clients in no region with a cell of its own."""

    base: int
    regions: int
    """Number of cells; regions below it have cells of their own."""


def measured(config: Config) -> tuple[str, ...]:
    """Return the names of the VIPs whose handshakes are counted, in the order of their cells."""
    if config.placement is None:
        return ()
    names = {service.name for service in config.placement.services}
    return tuple(sorted(vip.name for vip in config.vips if vip.artemis is not None and vip.artemis.service in names))


def cells(config: Config) -> Mapping[str, Cells]:
    """Return the cells by VIP name. Every VIP has the same number of cells, a power of two or the largest region."""
    names = measured(config)
    if not names:
        return {}
    room = DEMAND_CELLS // len(names)
    regions = min(1 << (room.bit_length() - 1), MAX_REGION)
    return {name: Cells(i * regions, regions) for i, name in enumerate(names)}


def cell_indices(cells: Mapping[str, Cells], regions: Collection[int]) -> list[int]:
    """Return the indices of the cells of ``regions``, and of clients in no region."""
    numbers = sorted({0, *regions})
    return [part.base + region for part in cells.values() for region in numbers if region < part.regions]


def entries(cells: Mapping[str, Cells], vip_ids: Mapping[str, int]) -> State:
    return {Key(SERVICE, (vip_ids[name],)): Action("set_counter_range", (part.base, part.regions)) for name, part in cells.items()}
