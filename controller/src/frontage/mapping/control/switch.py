"""What the own switch needs of the mapping: the entries of services that the address alone decides."""

from __future__ import annotations

from collections.abc import Collection

from frontage.mapping.store.tables import Tables, difference
from frontage.state.steering import Change, EndUserMapping, Sites


def whole(tables: Tables, site: int, names: Collection[str]) -> EndUserMapping:
    """All of it, for ``site``'s switch and the services of these names."""
    mapping = EndUserMapping()
    mapping.apply(change(Tables(), tables, site, names))
    return mapping


def change(old: Tables, new: Tables, site: int, names: Collection[str]) -> Change:
    """What turns the switch's mapping of one state into that of another."""
    found = difference(old.of_services(names), new.of_services(names), site)
    choices: dict[tuple[int, int], Sites | None] = {}
    for deployment, regions, rows in found.mapping:
        for region, row in zip(regions.tolist(), rows.tolist(), strict=True):
            choices[deployment, region] = tuple(one for one in row if one) or None
    # A service may have got another number.
    deployments: dict[int, int | None] = {old.details[name].number: None for name in found.services if name in old.services}
    deployments |= {new.details[name].number: number for name, number in found.services.items() if number is not None}
    return Change({prefix.network: region or None for prefix, region in found.clients.items()}, deployments, choices)
