# SPDX-License-Identifier: Apache-2.0
"""The placement of services and their moves, for the API."""

from __future__ import annotations

from typing import Any

from frontage.mapping.store.store import Store


def describe_placement(store: Store) -> list[dict[str, Any]]:
    """Return each placed service with its stage at each site, its last move, and the change that its demand requires.

    Raises StoreError.
    """
    documents, placements = store.documents(), store.placements()
    found = []
    for name in sorted(documents.keys() | placements.keys()):
        document = documents.get(name, {})
        stages = placements.get(name)
        sites = (
            [{"site": site, "stage": "active", "since": None} for site in document.get("active", ())]
            if stages is None
            else [{"site": site, "stage": str(item.stage), "since": item.since} for site, item in sorted(stages.items())]
        )
        change = document.get("next", {})
        found.append(
            {
                "name": name,
                "handshakes_per_second": document.get("handshakes_per_second"),
                "sites": sites,
                "last_move": document.get("move"),
                "adds": change.get("added", []),
                "removes": change.get("removed", []),
                "begun": change.get("begun", False),
                "error": document.get("error"),
            }
        )
    return found
