"""What an operator is told of a service's placement: a document of plain values, written at each epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from frontage.placement.values import Load
from frontage.placement.why import Why

Document: TypeAlias = dict[str, Any]


def view(service: str, now: float, why: Why, prefixes: Mapping[int, Sequence[str]], load: Load, *, moved: bool) -> Document:
    """``now``: the epoch's Unix time; ``prefixes``: some of each region; ``moved``: that the change has begun with this epoch."""
    return {
        "service": service,
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
        },
        "load": {"budget": load.budget, "handshakes": load.reads, "updates": load.updates, "shortfall": load.shortfall},
    }


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None
