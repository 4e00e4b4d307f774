# SPDX-License-Identifier: Apache-2.0
"""The store as a whole: latency, demand, services and the lease. Several controllers may use it at once (see `database`).

A parameter ``since`` is a version: the method returns what has changed after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sql

from frontage.mapping.demand.moves import Stage
from frontage.mapping.errors import LeaseLostError
from frontage.mapping.services import Replica, Service
from frontage.mapping.store import schema
from frontage.mapping.store.database import LEASE
from frontage.mapping.store.demand import DemandStore
from frontage.mapping.store.latency import LatencyStore


class Store(LatencyStore, DemandStore):
    """All tables of `schema`. Raises StoreError."""

    # Deployments of services

    def deploy(self, pairs: Iterable[tuple[str, int]], *, present: bool = True) -> None:
        """Set, for pairs of service and site, whether the service is present at the site."""
        rows = [{"name": name, "site": site, "present": present, "reported": False} for name, site in pairs]
        with self._writing() as (connection, version):
            self._upsert(connection, schema.service_deployment, rows, version)
            self._add_services(connection, [str(row["name"]) for row in rows], version)

    def deployments(self, since: int = 0) -> dict[str, set[int]]:
        """Return the sites of every service whose sites have changed after version ``since``.

        A service that is not placed has the sites where it is present. A placed service has those of them that get first flights;
        if it is present at none of these, it has all sites where it is present.
        """
        present = self.present_sites(since)
        table = schema.service_placement
        serving = table.c.stage.in_([stage for stage in Stage if stage.serves])
        placed: dict[str, set[int]] = {}
        with self.reading() as connection:
            moved = set(connection.execute(sql.select(table.c.name).where(table.c.version > since)).scalars()) if since else set()
            for name, site in connection.execute(sql.select(table.c.name, table.c.site).where(serving)):
                placed.setdefault(name, set()).add(site)
        if others := moved - present.keys():
            present |= {name: sites for name, sites in self.present_sites().items() if name in others}
        return {name: (sites & placed.get(name, sites)) or sites for name, sites in present.items()}

    def present_sites(self, since: int = 0) -> dict[str, set[int]]:
        """Return the sites where services are present, for every service for which that has changed after version ``since``.

        A service is present where a replica accepts connections, or where an operator has declared it.
        """
        table = schema.service_deployment
        query = sql.select(table.c.name, table.c.site, table.c.present)
        if since:
            query = query.where(table.c.name.in_(sql.select(table.c.name).where(table.c.version > since)))
        found: dict[str, set[int]] = {}
        with self.reading() as connection:
            for name, site, present in connection.execute(query):
                sites = found.setdefault(name, set())
                if present:
                    sites.add(site)
        return found

    def set_replicas(self, site: int, replicas: Sequence[Replica], now: float) -> None:
        """Replace a site's replicas by those that its dispatchers know at Unix time ``now``.

        A service is deployed at a site where a replica accepts connections (Artemis, sections 3.4.2 and 6.2). It is not if all its
        replicas there are overloaded or gone. An operator's declaration holds until replicas of the service report.
        """
        table, deployed = schema.replica_deployment, schema.service_deployment
        fields = ("site", "sid", "service", "address", "load", "weight", "accepting")
        rows = [{name: getattr(replica, name) for name in fields} | {"seen_at": now} for replica in replicas]
        accepting = {replica.service: False for replica in replicas}
        for replica in replicas:
            accepting[replica.service] |= replica.accepting
        here = sql.select(deployed.c.name, deployed.c.present, deployed.c.reported).where(deployed.c.site == site)
        with self._writing() as (connection, version):
            connection.execute(sql.delete(table).where(table.c.site == site))
            self._upsert(connection, table, rows, version)
            known = {name: (present, reported) for name, present, reported in connection.execute(here)}
            wanted = {name: False for name, (_, reported) in known.items() if reported} | accepting
            changed = [
                {"name": name, "site": site, "present": present, "reported": True}
                for name, present in wanted.items()
                if known.get(name) != (present, True)
            ]
            self._upsert(connection, deployed, changed, version)
            self._add_services(connection, accepting.keys() - known.keys(), version)

    def replicas(self) -> list[Replica]:
        """Return all replicas by site, SID and service."""
        table = schema.replica_deployment
        query = sql.select(table).order_by(table.c.site, table.c.sid, table.c.service)
        with self.reading() as connection:
            return [
                Replica(row.site, row.sid, row.service, row.address, row.load, row.weight, row.accepting)
                for row in connection.execute(query)
            ]

    def register(self, services: Iterable[Service]) -> None:
        """Set the redundancy, policy, ALPN and number of services. A number of 0 keeps the present number, or takes any free one.

        Another service that has a wanted number gets a new one.
        """
        table, wanted = schema.service, {item.name: item for item in services}
        if not wanted:
            return
        with self._writing() as (connection, version):
            self._add_services(connection, wanted.keys(), version)
            for service in wanted.values():
                values = {
                    "redundancy": service.redundancy,
                    "policy": service.policy,
                    "alpn": " ".join(service.alpn),
                    "version": version,
                }
                if service.number:
                    free = (connection.execute(sql.select(sql.func.max(table.c.number))).scalar() or 0) + 1
                    others = (table.c.number == service.number) & (table.c.name != service.name)
                    connection.execute(
                        sql.update(table).where(others).values(number=max(free, service.number + 1), version=version)
                    )
                    values["number"] = service.number
                connection.execute(sql.update(table).where(table.c.name == service.name).values(values))

    def services(self) -> dict[str, Service]:
        """Return all services by name, in the order of their numbers."""
        query = sql.select(schema.service).order_by(schema.service.c.number)
        with self.reading() as connection:
            return {
                row.name: Service(row.name, row.number, row.redundancy, row.policy, tuple(row.alpn.split()))
                for row in connection.execute(query)
            }

    def version(self) -> int:
        """Return the number of the last writing transaction."""
        with self.reading() as connection:
            query = sql.select(schema.counter.c.value).where(schema.counter.c.name == "sequence")
            return int(connection.execute(query).scalar_one())

    # The lease of the computing controller

    def acquire_lease(self, holder: str, now: float, seconds: float, gone: Collection[int] = ()) -> int | None:
        """Take or renew the lease for ``seconds``. Returns the lease's version, or None if another controller holds it.

        A holder's name is SITE@ANYTHING. Holders at sites that are ``gone`` lose the lease.
        """
        table = schema.lease
        free = (table.c.holder == holder) | (table.c.expires_at < now)
        for site in gone:
            free |= table.c.holder.startswith(f"{site}@")
        statement = (
            sql.update(table)
            .where((table.c.name == LEASE) & free)
            .values(holder=holder, expires_at=now + seconds, version=table.c.version + 1)
            .returning(table.c.version)
        )
        with self.reading() as connection:
            return connection.execute(statement).scalar_one_or_none()

    @contextmanager
    def publishing(self, holder: str, lease_version: int) -> Iterator[tuple[sql.Connection, int]]:
        """Open a transaction for computed tables. If the lease has changed hands, raises LeaseLostError and writes nothing."""
        table = schema.lease
        with self._writing() as (connection, version):
            mine = (table.c.name == LEASE) & (table.c.holder == holder) & (table.c.version == lease_version)
            if connection.execute(sql.update(table).where(mine).values(holder=holder)).rowcount != 1:
                raise LeaseLostError("another controller holds the lease of the mapping: this one stands by")
            yield connection, version

    def upsert(self, connection: sql.Connection, table: sql.Table, rows: Sequence[Mapping[str, Any]], version: int) -> None:
        """Insert or update rows. For use within `publishing`."""
        self._upsert(connection, table, rows, version)

    def _add_services(self, connection: sql.Connection, names: Iterable[str], version: int) -> None:
        table, names = schema.service, set(names)
        if not names:
            return
        known = set(connection.execute(sql.select(table.c.name)).scalars())
        highest = connection.execute(sql.select(sql.func.max(table.c.number))).scalar() or 0
        rows = [
            {"name": name, "number": number, "redundancy": 1, "policy": "latency", "alpn": "h3"}
            for number, name in enumerate(sorted(names - known), highest + 1)
        ]
        self._upsert(connection, table, rows, version)
