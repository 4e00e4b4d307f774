"""What an operator is told of a service's placement: a document of plain values, written at each epoch."""

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
"""The member of a document that says why the last epoch placed nothing."""


def without_error(document: Document) -> Document:
    return {key: value for key, value in document.items() if key != ERROR}


def view(
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
    """``number`` and ``now``: the epoch's, and its Unix time; ``prefixes``: some of each region; ``gain``: of the change, if there
    is one; ``moved``: that it has begun with this epoch; ``held``: that it has not because it may be chance."""
    return {
        "service": service,
        "number": number,
        "epoch": now,
        "handshakes_per_second": why.reads,
        "updates_per_second": why.writes,
        "beta": _finite(why.beta),
        "replicas": why.replicas,
        "bound": str(why.bound),
        "demand": [
            {
                "region": one.region,
                "prefixes": list(prefixes.get(one.region, ())),
                "share": one.share,
                "handshakes_per_second": one.share * why.reads,
                "site": one.site,
                "rtt_us": _finite(one.distance),
            }
            for one in why.regions
        ],
        "active": list(why.active),
        "planned": [{"site": site, "reason": str(reason)} for site, reason in why.planned],
        "next": {
            "begun": moved,
            "added": list(why.added),
            "removed": list(why.removed),
            "handshakes_missing": why.requests_missing,
            "held": held,
            "gain_us": None if gain is None else _finite(gain.mean),
            "gain_error_us": None if gain is None else gain.error,
        },
        "load": {"budget": load.budget, "handshakes": load.reads, "updates": load.updates, "shortfall": load.shortfall},
    }


def shortfall(load: Load) -> str:
    return (
        f"demand takes {load.reads + load.updates:.0f} handshakes a second, and mu of the sites' capacity is {load.budget:.0f}: "
        "each service has min_replicas; add capacity"
    )


def sites_of(ids: tuple[int, ...], flags: Flags) -> str:
    return " ".join(str(ids[i]) for i in np.flatnonzero(flags)) or "no site"


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None
