"""What was computed, as one immutable state with a version: read from the store, and turned into one site's entries."""

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
    """What one deployment chooses."""

    sites: Sites
    redundancy: int
    by_region: Choice
    """[region, redundancy] site ids, best first; 0 where there is none."""


@dataclass(frozen=True, slots=True)
class Tables:
    """One state of the mapping. States share what they have in common, so an old one costs little to keep."""

    version: int = 0
    """The last transaction that was looked at."""
    content: int = 0
    """The last one that changed anything here: all who read the store call the same state by this number."""
    clients: Mapping[Prefix, int] = field(default_factory=dict)
    deployments: Mapping[int, Choices] = field(default_factory=dict)
    services: Mapping[str, int] = field(default_factory=dict)
    """The number of each service's deployment."""
    details: Mapping[str, Service] = field(default_factory=dict)
    orders: Mapping[int, Sites] = field(default_factory=dict)
    """Of each site all sites, the nearest first: how clients of whom nothing is known are served that came there."""

    def default(self, site: int, deployment: int) -> Sites:
        """Where ``site`` sends clients that are in no region: itself if the service is there, else to the nearest."""
        choices = self.deployments[deployment]
        order = dict.fromkeys((site, *self.orders.get(site, ()), *sorted(choices.sites)))
        return tuple(one for one in order if one in choices.sites)[: choices.redundancy]

    def entries(self, site: int, deployment: int) -> Choice:
        """[region, redundancy] site ids of the entries that ``site`` needs; region 0 is the default, from which others differ.

        Zeros: no entry, as of a deployment that is not there.
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

    def of_services(self, names: Collection[str]) -> Tables:
        """What these services need of it."""
        services = {name: number for name, number in self.services.items() if name in names}
        used = set(services.values())
        deployments = {number: choices for number, choices in self.deployments.items() if number in used}
        return replace(self, services=services, deployments=deployments)


@dataclass(frozen=True, slots=True)
class Difference:
    """What the tables of one site's dispatchers or switch need to get from one state to another."""

    clients: dict[Prefix, int]
    """0 removes."""
    services: dict[str, int | None]
    """Numbers of their deployments; None removes. Services whose details have changed are here, too."""
    mapping: list[tuple[int, Rows, Choice]]
    """(deployment's number, regions [n], their entries [n, redundancy]); zeros remove."""

    def __len__(self) -> int:
        return len(self.clients) + len(self.services) + sum(len(regions) for _, regions, _ in self.mapping)


def difference(old: Tables, new: Tables, site: int) -> Difference:
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
    """Write what the engine has computed, where ``have``, which is what the store holds, differs. Raises LeaseLostError."""
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
    places = [
        {"site": site, "sites": " ".join(map(str, order))} for site, order in orders.items() if have.orders.get(site) != order
    ]
    if not (choices or clients or services or places):
        return
    with store.publishing(holder, lease_version) as (connection, version):
        store.upsert(connection, schema.client_region, clients, version)
        store.upsert(connection, schema.deployment_choice, choices, version)
        store.upsert(connection, schema.service_choice, services, version)
        store.upsert(connection, schema.site_order, places, version)


def read(store: Store, have: Tables) -> Tables:
    """The present state, from an earlier one; that one itself if nothing has changed."""
    content = have.content
    with store.reading() as connection:

        def news(table: sql.Table) -> Iterator[sql.Row[Any]]:
            nonlocal content
            for row in connection.execute(sql.select(table).where(table.c.version > have.version)):
                content = max(content, row.version)
                yield row

        query = sql.select(schema.counter.c.value).where(schema.counter.c.name == "sequence")
        version = connection.execute(query).scalar_one()
        if version == have.version:
            return have
        clients = {parse(row.prefix): row.region for row in news(schema.client_region)}
        deployments = {
            row.number: Choices(
                tuple(map(int, row.sites.split())),
                row.redundancy,
                np.frombuffer(row.choices, np.uint8).reshape(-1, row.redundancy),
            )
            for row in news(schema.deployment_choice)
        }
        services = {row.name: row.deployment for row in news(schema.service_choice)}
        orders = {row.site: tuple(map(int, row.sites.split())) for row in news(schema.site_order)}
        details = {
            row.name: Service(row.name, row.number, row.redundancy, row.policy, tuple(row.alpn.split()))
            for row in news(schema.service)
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


def _merge(old: Mapping[K, V], news: Mapping[K, V], is_there: Callable[[V], bool]) -> Mapping[K, V]:
    if not news:
        return old
    return {key: value for key, value in {**old, **news}.items() if is_there(value)}


def forget_others(changes: Changes, engine: Engine, tables: Tables) -> None:
    """What is published, but an engine that has just begun has not found again."""
    clients = engine.clients
    changes.clients |= {prefix: 0 for prefix in tables.clients if prefix not in clients}
    changes.deployments |= dict.fromkeys(tables.deployments.keys() - set(engine.deployments.values()))
    changes.services |= dict.fromkeys(tables.services.keys() - engine.services.keys())
