# SPDX-License-Identifier: Apache-2.0
"""The placement document of a service: plain values that explain to an operator where the service runs, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from frontage.mapping.demand.estimate import Gain
from frontage.mapping.placement.values import Flags, Load
from frontage.mapping.placement.why import Why

Document: TypeAlias = dict[str, Any]


ERROR = "error"
"""The key under which a document says why the last epoch placed nothing."""


def without_error(document: Document) -> Document:
    """Return the document without its error."""
    return {key: value for key, value in document.items() if key != ERROR}


def placement_document(
    service: str,
    number: int,
    now: float,
    why: Why,
    prefixes: Mapping[int, Sequence[str]],
    load: Load,
    gain: Gain | None,
    *,
    moved: bool,
    held: bool,
) -> Document:
    """Return the document of one service after an epoch.

    ``number`` and ``now``: the epoch's number and Unix time. ``prefixes``: example prefixes of each region. ``gain``: of the change,
    if there is one. ``moved``: the change begins with this epoch. ``held``: the change waits, because its gain is not significant.
    """
    return {
        "service": service,
        "number": number,
        "epoch": now,
        "handshakes_per_second": why.reads,
        "updates_per_second": why.writes,
        "beta": finite(why.beta),
        "replicas": why.replicas,
        "bound": str(why.bound),
        "demand": [
            {
                "region": region.region,
                "prefixes": list(prefixes.get(region.region, ())),
                "share": region.share,
                "handshakes_per_second": region.share * why.reads,
                "site": region.site,
                "rtt_us": finite(region.distance),
            }
            for region in why.regions
        ],
        "active": list(why.active),
        "planned": [{"site": site, "reason": str(reason)} for site, reason in why.planned],
        "next": {
            "begun": moved,
            "added": list(why.added),
            "removed": list(why.removed),
            "handshakes_missing": why.requests_missing,
            "held": held,
            "gain_us": None if gain is None else finite(gain.mean),
            "gain_error_us": None if gain is None else gain.error,
        },
        "load": {"budget": load.budget, "handshakes": load.reads, "updates": load.updates, "shortfall": load.shortfall},
    }


def shortfall_message(load: Load) -> str:
    """Return the log message for demand above the sites' capacity."""
    return (
        f"demand is {load.reads + load.updates:.0f} handshakes per second, but mu times the sites' capacity is {load.budget:.0f}: "
        "each service has min_replicas: add capacity"
    )


def format_sites(ids: tuple[int, ...], flags: Flags) -> str:
    """Return the ids of the flagged sites as text."""
    return " ".join(str(ids[i]) for i in np.flatnonzero(flags)) or "no site"


def finite(value: float) -> float | None:
    """Return None for infinity, which JSON cannot express."""
    return value if math.isfinite(value) else None
