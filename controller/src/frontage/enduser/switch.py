"""What the own switch needs of the mapping: the entries of services that the address alone decides."""

from __future__ import annotations

from collections.abc import Collection

from frontage.enduser.tables import Tables, difference
from frontage.mapping import Change, EndUserMapping, Sites


def whole(tables: Tables, site: int, names: Collection[str]) -> EndUserMapping:
    """All of it, for ``site``'s switch and the services of these names."""
    mapping = EndUserMapping()
    mapping.apply(change(Tables(), tables, site, names))
    return mapping


def change(old: Tables, new: Tables, site: int, names: Collection[str]) -> Change:
    """What turns the switch's mapping of one state into that of another."""
    found = difference(old, new, site)
    numbers = {name: service.number for tables in (old, new) for name, service in tables.details.items() if name in names}
    choices: dict[tuple[int, int], Sites | None] = {}
    for services, regions, rows in found.mapping:
        wanted = [name for name in services if name in numbers]
        if not wanted:
            continue
        for region, row in zip(regions.tolist(), rows.tolist(), strict=True):
            sites = tuple(one for one in row if one) or None
            for name in wanted:
                choices[numbers[name], region] = sites
    return Change({prefix.network: region or None for prefix, region in found.clients.items()}, choices)
