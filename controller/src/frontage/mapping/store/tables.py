# SPDX-License-Identifier: Apache-2.0
"""The computed tables as one immutable state with a version: read from the store, and turned into the entries of one site."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import sqlalchemy as sql

from frontage.mapping.compute.choices import Choice
from frontage.mapping.compute.engine import Engine
from frontage.mapping.compute.prefixes import Prefix, Rows, parse
from frontage.mapping.compute.values import Changes, Sites
from frontage.mapping.services import Service
from frontage.mapping.store import schema
from frontage.mapping.store.store import Store

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Choices:
    """The sites that one deployment chooses in each region."""

    sites: Sites
    redundancy: int
    by_region: Choice
    """[region, redundancy] site ids, best first; 0 for no site."""


@dataclass(frozen=True, slots=True)
class Tables:
    """One state of the mapping. States share their common parts, so keeping an old one costs little."""

    version: int = 0
    """The last transaction that was read."""
    content: int = 0
    """The last transaction that changed these tables. All readers of the store know a state by this number."""
    clients: Mapping[Prefix, int] = field(default_factory=dict)
    deployments: Mapping[int, Choices] = field(default_factory=dict)
    services: Mapping[str, int] = field(default_factory=dict)
    """The number of the deployment by service name."""
    details: Mapping[str, Service] = field(default_factory=dict)
    orders: Mapping[int, Sites] = field(default_factory=dict)
    """For each site all sites, nearest first: the order for clients that enter there and are in no region."""

    def default(self, site: int, deployment: int) -> Sites:
        """Return the sites to which ``site`` sends clients in no region: itself if the service runs there, then the nearest."""
        choices = self.deployments[deployment]
        order = dict.fromkeys((site, *self.orders.get(site, ()), *sorted(choices.sites)))
        return tuple(one for one in order if one in choices.sites)[: choices.redundancy]

    def entries(self, site: int, deployment: int) -> Choice:
        """Return the entries that ``site`` needs, as [region, redundancy] site ids.

        Region 0 is the default. Rows of zeros need no entry: regions that are like the default, and unknown deployments.
        """
        if deployment not in self.deployments:
            return np.zeros((1, 1), np.uint8)
        choices = self.deployments[deployment]
        entries = choices.by_region.copy()
        default = np.zeros(choices.redundancy, np.uint8)
        found = self.default(site, deployment)
        default[: len(found)] = found
        entries[(entries == default).all(axis=1)] = 0
        entries[0] = default
        return entries

    def for_services(self, names: Collection[str]) -> Tables:
        """Return the part of the tables that these services need."""
        services = {name: number for name, number in self.services.items() if name in names}
        used = set(services.values())
        deployments = {number: choices for number, choices in self.deployments.items() if number in used}
        return replace(self, services=services, deployments=deployments)


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between two states, for the dispatchers or the switch of one site."""

    clients: dict[Prefix, int]
    """Regions by client prefix; 0 removes the entry."""
    services: dict[str, int | None]
    """Deployment numbers of services that are new or changed; None removes the service."""
    mapping: list[tuple[int, Rows, Choice]]
    """(deployment number, regions [n], entries [n, redundancy]); a row of zeros removes the entry."""

    def __len__(self) -> int:
        """Return the number of changed entries."""
        return len(self.clients) + len(self.services) + sum(len(regions) for _, regions, _ in self.mapping)


def difference(old: Tables, new: Tables, site: int) -> Difference:
    """Return what changes at ``site`` from the ``old`` to the ``new`` state."""
    clients: dict[Prefix, int] = {}
    if old.clients is not new.clients:
        clients = {prefix: region for prefix, region in new.clients.items() if old.clients.get(prefix) != region}
        clients |= dict.fromkeys(old.clients.keys() - new.clients.keys(), 0)
    services: dict[str, int | None] = {
        name: number
        for name, number in new.services.items()
        if old.services.get(name) != number or old.details.get(name) != new.details.get(name)
    }
    services |= dict.fromkeys(old.services.keys() - new.services.keys())
    mapping: list[tuple[int, Rows, Choice]] = []
    for number in sorted(old.deployments.keys() | new.deployments.keys()):
        if old.orders == new.orders and old.deployments.get(number) is new.deployments.get(number):
            continue
        regions, choices = _changed(old.entries(site, number), new.entries(site, number))
        if len(regions):
            mapping.append((number, regions, choices))
    return Difference(clients, services, mapping)


def _changed(have: Choice, want: Choice) -> tuple[Rows, Choice]:
    shape = max(len(have), len(want)), max(have.shape[1], want.shape[1])
    have, want = (np.pad(x, ((0, shape[0] - len(x)), (0, shape[1] - x.shape[1]))) for x in (have, want))
    regions = np.flatnonzero((have != want).any(axis=1))
    return regions, want[regions]


def publish(
    store: Store, holder: str, lease_version: int, engine: Engine, changes: Changes, orders: Mapping[int, Sites], have: Tables
) -> None:
    """Write the engine's results where they differ from ``have``, the store's present tables. Raises LeaseLostError."""
    numbers = {number: deployment for deployment, number in engine.deployments.items()}
    choices = []
    for number in {number for number, _, _ in changes.mapping} | changes.deployments.keys():
        deployment, old = numbers.get(number), have.deployments.get(number)
        sites: Sites = () if deployment is None else tuple(engine.sites[list(deployment.sites)].tolist())
        redundancy = 1 if deployment is None else deployment.redundancy
        data = b"" if deployment is None else engine.choices[number].tobytes()
        if (old is None and sites) or (
            old is not None and (old.sites, old.redundancy, old.by_region.tobytes()) != (sites, redundancy, data)
        ):
            choices.append({"number": number, "sites": " ".join(map(str, sites)), "redundancy": redundancy, "choices": data})
    clients = [
        {"prefix": str(prefix), "region": region}
        for prefix, region in changes.clients.items()
        if have.clients.get(prefix, 0) != region
    ]
    services = [
        {"name": name, "deployment": number or 0}
        for name, number in changes.services.items()
        if have.services.get(name, 0) != (number or 0)
    ]
    site_orders = [
        {"site": site, "sites": " ".join(map(str, order))} for site, order in orders.items() if have.orders.get(site) != order
    ]
    if not (choices or clients or services or site_orders):
        return
    with store.publishing(holder, lease_version) as (connection, version):
        store.upsert(connection, schema.client_region, clients, version)
        store.upsert(connection, schema.deployment_choice, choices, version)
        store.upsert(connection, schema.service_choice, services, version)
        store.upsert(connection, schema.site_order, site_orders, version)


def read(store: Store, have: Tables) -> Tables:
    """Return the present state, given an earlier one; that state itself if nothing has changed."""
    content = have.content
    with store.reading() as connection:

        def changed_rows(table: sql.Table) -> Iterator[sql.Row[Any]]:
            nonlocal content
            for row in connection.execute(sql.select(table).where(table.c.version > have.version)):
                content = max(content, row.version)
                yield row

        query = sql.select(schema.counter.c.value).where(schema.counter.c.name == "sequence")
        version = connection.execute(query).scalar_one()
        if version == have.version:
            return have
        clients = {parse(row.prefix): row.region for row in changed_rows(schema.client_region)}
        deployments = {
            row.number: Choices(
                tuple(map(int, row.sites.split())),
                row.redundancy,
                np.frombuffer(row.choices, np.uint8).reshape(-1, row.redundancy),
            )
            for row in changed_rows(schema.deployment_choice)
        }
        services = {row.name: row.deployment for row in changed_rows(schema.service_choice)}
        orders = {row.site: tuple(map(int, row.sites.split())) for row in changed_rows(schema.site_order)}
        details = {
            row.name: Service(row.name, row.number, row.redundancy, row.policy, tuple(row.alpn.split()))
            for row in changed_rows(schema.service)
        }
    if content == have.content:
        return replace(have, version=version)
    return Tables(
        version,
        content,
        _merge(have.clients, clients, lambda region: region > 0),
        _merge(have.deployments, deployments, lambda choices: len(choices.sites) > 0),
        _merge(have.services, services, lambda number: number > 0),
        _merge(have.details, details, lambda _: True),
        _merge(have.orders, orders, lambda _: True),
    )


def _merge(old: Mapping[K, V], changes: Mapping[K, V], is_present: Callable[[V], bool]) -> Mapping[K, V]:
    if not changes:
        return old
    return {key: value for key, value in {**old, **changes}.items() if is_present(value)}


def remove_stale(changes: Changes, engine: Engine, tables: Tables) -> None:
    """Add to ``changes`` the removal of published entries that a newly started engine has not computed again."""
    clients = engine.clients
    changes.clients |= {prefix: 0 for prefix in tables.clients if prefix not in clients}
    changes.deployments |= dict.fromkeys(tables.deployments.keys() - set(engine.deployments.values()))
    changes.services |= dict.fromkeys(tables.services.keys() - engine.services.keys())
