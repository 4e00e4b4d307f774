# SPDX-License-Identifier: Apache-2.0
"""The part of the computed tables that the own site's switch needs: services that their address alone identifies."""

from __future__ import annotations

from collections.abc import Collection

from frontage.mapping.store.tables import Tables, difference
from frontage.state.steering import Change, EndUserMapping, Sites


def whole(tables: Tables, site: int, names: Collection[str]) -> EndUserMapping:
    """Return the mapping for the switch of ``site`` and the services with these names."""
    mapping = EndUserMapping()
    mapping.apply(change(Tables(), tables, site, names))
    return mapping


def change(old: Tables, new: Tables, site: int, names: Collection[str]) -> Change:
    """Return the change of the switch's mapping from the ``old`` to the ``new`` tables."""
    found = difference(old.for_services(names), new.for_services(names), site)
    choices: dict[tuple[int, int], Sites | None] = {}
    for deployment, regions, rows in found.mapping:
        for region, row in zip(regions.tolist(), rows.tolist(), strict=True):
            choices[deployment, region] = tuple(chosen for chosen in row if chosen) or None
    # Remove the old numbers first: a service may have got another number.
    deployments: dict[int, int | None] = {old.details[name].number: None for name in found.services if name in old.services}
    deployments |= {new.details[name].number: number for name, number in found.services.items() if number is not None}
    return Change({prefix.network: region or None for prefix, region in found.clients.items()}, deployments, choices)
