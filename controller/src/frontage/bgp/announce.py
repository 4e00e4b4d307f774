# SPDX-License-Identifier: Apache-2.0
"""The announced routes, as a pure function of the configuration and the state of the switches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_network

from frontage.config.bgp import Bgp
from frontage.config.schema import Config
from frontage.fields import IPNetwork


class Export(StrEnum):
    """The treatment of the routes towards the routers of one switch."""

    ANNOUNCED = "announced"
    SHUTTING_DOWN = "shutting down"
    """Announced with the community GRACEFUL_SHUTDOWN (RFC 8326), so that routers prefer other paths."""
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class SwitchState:
    """The state of one switch, as far as its announcement depends on it."""

    is_in_sync: bool
    """The switch has the configuration, or this controller is a standby."""
    draining_for: float | None = None
    """Seconds since the switch began to drain; None if it does not."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """The routes that FRR originates, and what the routers of each switch get of them."""

    prefixes: frozenset[IPNetwork]
    exports: Mapping[str, Export]
    """By name of the switch."""


NOTHING = Announcement(frozenset(), {})


def announcement(config: Config, bgp: Bgp, states: Mapping[str, SwitchState], last: Announcement = NOTHING) -> Announcement:
    """Return what is to be announced. ``last`` is what was announced before.

    A VIP is announced while it has enough active servers, and a switch while it is in sync. If no switch is in sync, probably the
    controller is cut off from them: then the exports stay.
    """
    exports = {name: _export(bgp, state) for name, state in states.items()}
    if not any(state.is_in_sync for state in states.values()) and last.exports:
        exports = {name: last.exports.get(name, export) for name, export in exports.items()}
    return Announcement(_prefixes(config, bgp), exports)


def _prefixes(config: Config, bgp: Bgp) -> frozenset[IPNetwork]:
    active = {name: sum(server.active for server in servers) for name, servers in config.servers_by_vip.items()}
    vips = [vip for vip in config.vips if active[vip.name] >= bgp.min_servers]
    return frozenset([*(ip_network(vip.address) for vip in vips), *(vip.cookie_prefix for vip in vips if vip.cookie_prefix)])


def _export(bgp: Bgp, state: SwitchState) -> Export:
    if not state.is_in_sync:
        return Export.WITHDRAWN
    if state.draining_for is None:
        return Export.ANNOUNCED
    return Export.SHUTTING_DOWN if state.draining_for < bgp.graceful_shutdown else Export.WITHDRAWN
