# SPDX-License-Identifier: Apache-2.0
"""The routes that a switch has learned from routers, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from frontage.fields import IPAddress, IPNetwork

NextHops = tuple[IPAddress, ...]
"""The next hops of a route, in ascending order."""


@dataclass(frozen=True, slots=True)
class Learned:
    """Learned routes. Static routes and hosts on links come before learned routes with the same prefix."""

    routes: Mapping[IPNetwork, NextHops] = field(default_factory=dict)
    down: frozenset[IPAddress] = frozenset()
    """Next hops whose session has ended, which leave their groups before their routes change."""
    is_complete: bool = True
    """False as long as routers may have more routes, so that the switch keeps the learned routes that it has."""
    withdrawn: frozenset[IPNetwork] = frozenset()
    """While the routes are not complete, those that the switch does not keep."""


NOTHING = Learned()
"""The routes of a switch that does not learn any."""
