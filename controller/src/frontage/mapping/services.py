# SPDX-License-Identifier: Apache-2.0
"""Services and their replicas, and what the configuration says of services and sites."""

from __future__ import annotations

from dataclasses import dataclass, replace

from frontage.config import Config
from frontage.fields import IPAddress


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica of one service, as a dispatcher of its site reports it."""

    site: int
    sid: int
    service: str
    address: str
    load: float
    weight: float
    accepting: bool


@dataclass(frozen=True, slots=True)
class Service:
    """The settings of a service, without its sites."""

    name: str
    number: int
    """The service's number in the tables; 0 if any will do."""
    redundancy: int = 1
    policy: str = "latency"
    alpn: tuple[str, ...] = ("h3",)

    def matches(self, other: Service | None) -> bool:
        """Return whether ``other`` has the same settings. A number of 0 matches any number."""
        return other is not None and replace(self, number=self.number or other.number) == other


def sites_of(config: Config) -> dict[int, IPAddress]:
    """Return the tunnel address of every site's switch by site id."""
    own = {} if config.site is None else {config.site.id: config.site.vtep[0]}
    return own | {site.id: site.vtep for site in config.other_sites}


def services_of(config: Config) -> tuple[tuple[Service, ...], frozenset[str]]:
    """Return the services that the configuration names, and the names of those that their address alone identifies."""
    listed = config.end_users.services if config.end_users is not None else ()
    services = {item.name: Service(item.name, item.id or 0, item.redundancy, item.policy, item.alpn) for item in listed}
    decided = set()
    for vip in config.vips:
        if vip.artemis is not None:
            name = vip.artemis.service
            known = services.get(name, Service(name, 0))
            services[name] = replace(known, number=vip.artemis.id)
            if vip.artemis.dedicated_address:
                decided.add(name)
    return tuple(services.values()), frozenset(decided)
