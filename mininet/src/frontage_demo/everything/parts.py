# SPDX-License-Identifier: Apache-2.0
"""The systems that a network uses. The comparison leaves out some of them, to show what each contributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

AIFO_HEADROOM = 0.5
"""AIFO's k, the share of the queue that is open to all packets."""


@dataclass(frozen=True)
class Parts:
    """The systems of a network; the usual alternative replaces each system that is left out."""

    balancing: bool = True
    """Balancers write CloudCookies, and CCLB4 chooses them; otherwise a consistent hash does."""
    scheduling: float | None = AIFO_HEADROOM
    """AIFO's k: it ranks packets by the RPT in their cookies; None if queues are FIFO."""
    handoff: str | None = "per-connection"
    """Policy by which balancers choose the real servers that answer clients directly; None if balancers proxy."""
    steering: bool = True
    """Clients hash the name, and dispatchers choose the site and the balancer; otherwise DNS returns the best site."""
    routes_by_source: bool = False
    """Servers choose the switch of a packet by its source address, too, and so spread the packets of a connection."""

    def __post_init__(self) -> None:
        if not self.balancing and (self.scheduling is not None or self.handoff or self.steering):
            raise ValueError("invalid parts: scheduling, hand-off and steering need the cookies of `balancing`")


ALL = Parts()
NONE = Parts(balancing=False, scheduling=None, handoff=None, steering=False)
NETWORKS = {
    "plain": NONE,
    "CCLB4": Parts(handoff=None, scheduling=None, steering=False),
    "CCLB4, a connection over both switches": Parts(handoff=None, scheduling=None, steering=False, routes_by_source=True),
    "CCLB4 and AIFO": Parts(handoff=None, steering=False),
    "CCLB4 and hand-off": Parts(scheduling=None, steering=False),
    "CCLB4 and hand-off, a page from three real servers": Parts(handoff="least-load", scheduling=None, steering=False),
    "CCLB4 and Artemis": Parts(handoff=None, scheduling=None),
    "all but AIFO": Parts(scheduling=None),
    "all but the hand-off": Parts(handoff=None),
    "all but Artemis": Parts(steering=False),
    "all, with k = 0.1": Parts(scheduling=0.1),
    "Frontage": ALL,
}
"""The networks that show what each system contributes, by name."""

FACTORIAL = (
    "CCLB4",
    "CCLB4 and AIFO",
    "CCLB4 and hand-off",
    "CCLB4 and Artemis",
    "all but AIFO",
    "all but the hand-off",
    "all but Artemis",
    "Frontage",
)
"""The networks that contain each combination of `SYSTEMS` once."""
SYSTEMS: Mapping[str, Callable[[Parts], bool]] = {
    "AIFO": lambda parts: parts.scheduling is not None,
    "hand-off": lambda parts: parts.handoff is not None,
    "Artemis": lambda parts: parts.steering,
}
"""Predicates that tell the networks with a system from those without it."""
