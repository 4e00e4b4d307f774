# SPDX-License-Identifier: Apache-2.0
"""The end-user mapping (Artemis, section 3.3) in the switch: regions of clients, deployments of services, and sites.

    mapping = EndUserMapping()
    mapping.regions[ip_network("2001:db8:c1::/48")] = 5
    mapping.deployments[3] = 7                   # service 3 has deployment 7; services with the same sites share it
    mapping.choices[7, 5] = (2, 1)               # deployment 7, region 5: site 2 is best, and site 1 gets a copy
    entries = MappingEntries(config, mapping)    # all entries
    entries.change(Change(choices={(7, 5): (1,)}))    # computes only the difference

Region 0 stands for clients without a region, and for regions in which a deployment has no choice of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from frontage import limits
from frontage.config import Config
from frontage.config.routing import RoutingTable
from frontage.fields import IPNetwork
from frontage.p4 import replication
from frontage.p4.entries import Action, Difference, Key, State, exact
from frontage.p4.replication import CLONE_SESSION
from frontage.state.blocks.region import CLIENT4, CLIENT6
from frontage.state.blocks.steering import DEFAULT_MAPPING, DEPLOYMENT
from frontage.state.blocks.steering import MAPPING as MAPPING_TABLE

DeploymentRegion = tuple[int, int]
Sites = tuple[int, ...]
"""The ids of the sites that get a first flight, the best first."""


class MappingError(Exception):
    """The mapping cannot be installed.

    ``what`` is the problem and ``fix`` the remedy.
    """

    def __init__(self, what: str, fix: str):
        super().__init__(f"{what}: {fix}")
        self.what = what
        self.fix = fix


@dataclass(slots=True)
class EndUserMapping:
    """The end-user mapping."""

    regions: dict[IPNetwork, int] = field(default_factory=dict)
    """Region, 1 to 65535, by client prefix."""
    deployments: dict[int, int] = field(default_factory=dict)
    """Deployment, 1 to 65535, by service. Services at the same sites share one."""
    choices: dict[DeploymentRegion, Sites] = field(default_factory=dict)
    """Sites by deployment and region."""

    def apply(self, change: Change) -> None:
        """Change the mapping in place."""
        _merge(self.regions, change.regions)
        _merge(self.deployments, change.deployments)
        _merge(self.choices, change.choices)

    def change_to(self, other: EndUserMapping) -> Change:
        """Return the change that turns this mapping into ``other``."""
        return Change(
            _changes(self.regions, other.regions),
            _changes(self.deployments, other.deployments),
            _changes(self.choices, other.choices),
        )

    @property
    def whole(self) -> Change:
        """The change that turns an empty mapping into this one."""
        return Change(self.regions, self.deployments, self.choices)

    def for_services(self, services: Collection[int]) -> EndUserMapping:
        """Return the part of the mapping that these services need."""
        deployments = {service: deployment for service, deployment in self.deployments.items() if service in services}
        used = set(deployments.values())
        choices = {key: sites for key, sites in self.choices.items() if key[0] in used}
        return EndUserMapping(dict(self.regions), deployments, choices)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the mapping: new values by key. None removes the key."""

    regions: Mapping[IPNetwork, int | None] = field(default_factory=dict)
    deployments: Mapping[int, int | None] = field(default_factory=dict)
    choices: Mapping[DeploymentRegion, Sites | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.regions or self.deployments or self.choices)


K = TypeVar("K")
V = TypeVar("V")


def _merge(old: dict[K, V], new: Mapping[K, V | None]) -> None:
    for key, value in new.items():
        if value is None:
            old.pop(key, None)
        else:
            old[key] = value


def _changes(old: Mapping[K, V], new: Mapping[K, V]) -> dict[K, V | None]:
    changes: dict[K, V | None] = {key: value for key, value in new.items() if old.get(key) != value}
    changes.update((key, None) for key in old if key not in new)
    return changes


class MappingEntries:
    """The entries and clone sessions of the mapping in one switch, updated by differences.

    Each set of sites that gets copies has a clone session as long as an entry leads to it. ``installed`` are the sessions in
    the switch. Sets with an installed session keep its number, so that a restarted controller writes nothing. Raises
    MappingError.
    """

    def __init__(self, config: Config, mapping: EndUserMapping, installed: Mapping[Key, Action] | None = None):
        self.state: State = {}
        self.counts: Counter[str] = Counter()
        """Number of entries by table."""
        self._own = config.site.id if config.site else 0
        self._dedicated = config.dedicated_services
        routing = RoutingTable(config.routes, config.on_link_hosts)
        ports = {port.name: port.id for port in config.ports}
        self._ports = {site.id: ports[hop.port] for site in config.other_sites if (hop := routing.lookup(site.vtep)) is not None}
        self._numbers: dict[frozenset[int], int] = {}
        self._taken: set[int] = set()
        self._uses: Counter[frozenset[int]] = Counter()
        self._sets: dict[Key, frozenset[int]] = {}
        self._next = limits.COPY_SESSIONS.start
        for key, action in (installed or {}).items():
            self._recover(key, action)
        self.change(mapping.whole)

    def _recover(self, key: Key, action: Action) -> None:
        (number,) = exact(key.match)
        sites = frozenset(site for _, site in replication.replicas_of(action))
        if number in limits.COPY_SESSIONS and sites not in self._numbers:
            self._numbers[sites] = number
            self._taken.add(number)

    def check(self, change: Change) -> None:
        """Raise MappingError if the switch cannot hold the result of the change."""
        for prefix, region in change.regions.items():
            if region is not None and not 1 <= region <= limits.MAX_REGION:
                raise MappingError(f"{prefix}: invalid region {region}", f"use a region from 1 to {limits.MAX_REGION}")
        for service, deployment in change.deployments.items():
            if deployment is not None and not 1 <= deployment <= limits.MAX_DEPLOYMENT:
                raise MappingError(
                    f"service {service}: invalid deployment {deployment}", f"use a deployment from 1 to {limits.MAX_DEPLOYMENT}"
                )
        for (deployment, region), sites in change.choices.items():
            where = f"deployment {deployment} in region {region}"
            if not 1 <= deployment <= limits.MAX_DEPLOYMENT or not 0 <= region <= limits.MAX_REGION:
                raise MappingError(
                    f"invalid choice for {where}",
                    f"use a deployment from 1 to {limits.MAX_DEPLOYMENT} and a region from 0 to {limits.MAX_REGION}",
                )
            if sites is None:
                continue
            if not 1 <= len(sites) <= limits.MAX_REDUNDANCY or len(set(sites)) != len(sites):
                raise MappingError(f"{where}: invalid sites {list(sites)}", f"use 1 to {limits.MAX_REDUNDANCY} different sites")
            for site in sites:
                if site != self._own and site not in self._ports:
                    raise MappingError(f"{where}: unknown site {site}", "add it to `sites`")

    def change(self, change: Change) -> Difference:
        """Apply the change and return the difference to write, including sessions.

        Raises MappingError, and then changes nothing.
        """
        self.check(change)
        wanted: dict[Key, Action | None] = {}
        for prefix, region in change.regions.items():
            key = Key(CLIENT4 if prefix.version == 4 else CLIENT6, ((int(prefix.network_address), prefix.prefixlen),))
            wanted[key] = None if region is None else Action("set_region", (region,))
        for service, deployment in change.deployments.items():
            if service in self._dedicated:
                wanted[Key(DEPLOYMENT, (service,))] = None if deployment is None else Action("set_deployment", (deployment,))
        sets = {self._others(sites) for sites in change.choices.values() if sites}
        if len(self._numbers.keys() | sets - {frozenset()}) > len(limits.COPY_SESSIONS):
            raise MappingError(
                f"more than {len(limits.COPY_SESSIONS)} sets of sites would get copies", "lower the redundancy of services"
            )
        before = dict(self._numbers)
        used = set(self._uses)
        for (deployment, region), sites in change.choices.items():
            key = Key(MAPPING_TABLE, (deployment, region)) if region else Key(DEFAULT_MAPPING, (deployment,))
            wanted[key] = None if sites is None else self._choose(sites)
            self._use(key, frozenset() if sites is None else self._others(sites))
        wanted |= self._session_changes(used, before)
        return self._take(wanted)

    def _take(self, wanted: Mapping[Key, Action | None]) -> Difference:
        found = Difference()
        for key, action in wanted.items():
            old = self.state.get(key)
            if action is None:
                if old is not None:
                    found.unexpected[key] = self.state.pop(key)
                    self.counts[key.table] -= 1
                continue
            if old is None:
                found.missing[key] = action
                self.counts[key.table] += 1
            elif old != action:
                found.different[key] = action
            self.state[key] = action
        return found

    def _others(self, sites: Sites) -> frozenset[int]:
        """Return the sites that get copies: all but the one that gets the packet itself, which is this site if listed."""
        return frozenset(sites) - {self._own if self._own in sites else sites[0]}

    def _choose(self, sites: Sites) -> Action:
        session = self._number(self._others(sites))
        if self._own in sites:
            return Action("keep_local", (session,))
        return Action("to_site", (sites[0], session))

    def _number(self, sites: frozenset[int]) -> int:
        """Return the session of these sites, or 0 for no sites."""
        if not sites:
            return 0
        if sites not in self._numbers:
            number = next(n for n in self._candidates() if n not in self._taken)
            self._next = number + 1
            self._numbers[sites] = number
            self._taken.add(number)
        return self._numbers[sites]

    def _candidates(self) -> Iterable[int]:
        yield from range(self._next, limits.COPY_SESSIONS.stop)
        yield from range(limits.COPY_SESSIONS.start, self._next)

    def _use(self, key: Key, sites: frozenset[int]) -> None:
        """Record that the entry leads to the session of these sites."""
        old = self._sets.pop(key, None)
        if old is not None:
            self._uses[old] -= 1
            if not self._uses[old]:
                del self._uses[old]
        if sites:
            self._sets[key] = sites
            self._uses[sites] += 1

    def _session_changes(self, used: set[frozenset[int]], before: Mapping[frozenset[int], int]) -> dict[Key, Action | None]:
        changes: dict[Key, Action | None] = {}
        for sites in self._uses.keys() - used:
            key, action = replication.session(self._numbers[sites], [(self._ports[site], site) for site in sites])
            changes[key] = action
        for sites in (used | before.keys()) - self._uses.keys():
            number = self._numbers.pop(sites, None)
            if number is not None:
                self._taken.discard(number)
                changes[Key(CLONE_SESSION, (number,))] = None
        return changes
