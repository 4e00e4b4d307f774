# SPDX-License-Identifier: Apache-2.0
"""The announced routes, as a pure function of the configuration and the state of the switches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import ip_network

from frontage.config.bgp import Bgp
from frontage.config.schema import Config
from frontage.config.vips import Vip
from frontage.fields import IPNetwork


class Export(StrEnum):
    """The treatment of the routes towards the routers of one switch."""

    ANNOUNCED = "announced"
    SHUTTING_DOWN = "shutting down"
    """Announced with the community GRACEFUL_SHUTDOWN (RFC 8326), so that routers prefer other paths."""
    OWN_PREFIXES = "own prefixes"
    """Only own prefixes and default routes are announced, with GRACEFUL_SHUTDOWN, because no other switch takes over their packets."""
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class SwitchState:
    """The state of one switch, as far as its announcement depends on it."""

    is_in_sync: bool
    """The switch has the configuration, or this controller is a standby."""
    draining_for: float | None = None
    """Seconds since the switch began to drain; None if it does not."""
    unresolved: frozenset[str] = frozenset()
    """The names of the VIPs that are service addresses and that the switch does not resolve."""
    isolated: frozenset[int] = frozenset()
    """The IP versions for which the switch has lost all its upstream routers."""

    @property
    def is_in_service(self) -> bool:
        """True if the switch takes over the packets of a draining switch."""
        return self.is_in_sync and self.draining_for is None


@dataclass(frozen=True, slots=True)
class Announcement:
    """The routes that FRR originates, and what the routers of each switch get of them."""

    prefixes: frozenset[IPNetwork]
    exports: Mapping[str, Export]
    """By name of the switch."""
    withheld: Mapping[str, frozenset[IPNetwork]] = field(default_factory=dict)
    """Prefixes that are withheld from the routers of a switch, by name of the switch."""


NOTHING = Announcement(frozenset(), {})


def announcement(config: Config, bgp: Bgp, states: Mapping[str, SwitchState], last: Announcement = NOTHING) -> Announcement:
    """Return what is to be announced. ``last`` is what was announced before.

    A VIP is announced while it has enough active servers, a service address while a switch resolves it, and a switch while it is in
    sync. If no switch is in sync, probably the controller is cut off from them: then their routes stay. Default routes do not lead
    through a switch without upstream routers, unless no switch has any.
    """
    routes = _Routes.of(config, bgp)
    exports = {name: _export(bgp, name, states, has_own=bool(routes.own | routes.defaults)) for name in states}
    in_sync = {name: routes.unresolved(state) for name, state in states.items() if state.is_in_sync}
    if in_sync:
        unresolved = {name: routes.unresolved(state) for name, state in states.items()}
        resolved = routes.services - frozenset.intersection(routes.services, *in_sync.values())
    else:
        exports = {name: last.exports.get(name, export) for name, export in exports.items()}
        unresolved = {name: last.withheld.get(name, frozenset()) for name in states}
        resolved = routes.services & last.prefixes
    prefixes = routes.vips | resolved | routes.own | routes.defaults
    isolated = _isolated(routes.defaults, states)
    withheld = {
        name: prefixes - routes.own - routes.defaults
        if export is Export.OWN_PREFIXES
        else (unresolved[name] & prefixes) | isolated[name]
        for name, export in exports.items()
    }
    return Announcement(prefixes, exports, {name: those for name, those in withheld.items() if those})


def _isolated(defaults: frozenset[IPNetwork], states: Mapping[str, SwitchState]) -> dict[str, frozenset[IPNetwork]]:
    """Return the default routes to withhold because a switch has no upstream routers, by name of the switch.

    A default route that would then be withheld on all switches in service is not included.
    """
    lost = {name: frozenset(route for route in defaults if route.version in state.isolated) for name, state in states.items()}
    lost_everywhere = frozenset.intersection(defaults, *(lost[name] for name, state in states.items() if state.is_in_service))
    return {name: those - lost_everywhere for name, those in lost.items()}


@dataclass(frozen=True, slots=True)
class _Routes:
    """The routes of a configuration."""

    vips: frozenset[IPNetwork]
    """VIPs that are not service addresses and have enough active servers."""
    own: frozenset[IPNetwork]
    """The site's own prefixes, among them cookie prefixes."""
    defaults: frozenset[IPNetwork]
    """Default routes for servers and rack routers."""
    names: Mapping[IPNetwork, frozenset[str]]
    """The names of the service addresses behind each of their routes."""

    @classmethod
    def of(cls, config: Config, bgp: Bgp) -> _Routes:
        servers, active = config.servers_by_vip, config.active_servers
        names: dict[IPNetwork, set[str]] = {}
        own = set(bgp.own_prefixes)
        vips = set()
        for vip in config.vips:
            if vip.artemis is not None:
                names.setdefault(service_route(bgp, vip), set()).add(vip.name)
                has_cookies = bool(servers[vip.name])  # connections have migrated to draining servers, too
            else:
                has_cookies = active[vip.name] >= bgp.min_servers
                vips.update([ip_network(vip.address)] if has_cookies else [])
            if vip.cookie_prefix is not None and has_cookies:
                own.add(vip.cookie_prefix)
        return cls(frozenset(vips), frozenset(own), bgp.default_routes, {route: frozenset(those) for route, those in names.items()})

    @property
    def services(self) -> frozenset[IPNetwork]:
        """The routes to service addresses."""
        return frozenset(self.names)

    def unresolved(self, state: SwitchState) -> frozenset[IPNetwork]:
        """Return the routes for which the switch resolves no service address."""
        return frozenset(route for route, names in self.names.items() if names <= state.unresolved)


def service_route(bgp: Bgp, vip: Vip) -> IPNetwork:
    """Return the route that announces a service address: a service prefix, or a host route."""
    address = ip_network(vip.address)
    return next((prefix for prefix in bgp.service_prefixes if vip.address in prefix), address)


def _export(bgp: Bgp, name: str, states: Mapping[str, SwitchState], *, has_own: bool) -> Export:
    state = states[name]
    if not state.is_in_sync:
        return Export.WITHDRAWN
    if state.draining_for is None:
        return Export.ANNOUNCED
    if state.draining_for < bgp.graceful_shutdown:
        return Export.SHUTTING_DOWN
    is_last = not any(other.is_in_service for other in states.values())
    return Export.OWN_PREFIXES if is_last and has_own else Export.WITHDRAWN
