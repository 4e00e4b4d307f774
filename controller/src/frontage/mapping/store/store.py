"""The store: what was measured and reported, by several controllers at once (`database` says how). ``since`` is a version."""

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
    """The tables of `schema`. Raises StoreError."""

    # Where services are

    def deploy(self, pairs: Iterable[tuple[str, int]], *, present: bool = True) -> None:
        """Say of (service, site) pairs that the service is there, or is no longer."""
        rows = [{"name": name, "site": site, "present": present, "reported": False} for name, site in pairs]
        with self._writing() as (connection, version):
            self._upsert(connection, schema.service_deployment, rows, version)
            self._add_services(connection, [str(row["name"]) for row in rows], version)

    def deployments(self, since: int = 0) -> dict[str, set[int]]:
        """The sites of every service of which a site has come or gone since that version: where it is present, and of services that
        are placed where they are to get first flights. One that is present at none of these is wherever it is."""
        present = self.present(since)
        table = schema.service_placement
        serving = table.c.stage.in_([stage for stage in Stage if stage.serves])
        placed: dict[str, set[int]] = {}
        with self.reading() as connection:
            moved = set(connection.execute(sql.select(table.c.name).where(table.c.version > since)).scalars()) if since else set()
            for name, site in connection.execute(sql.select(table.c.name, table.c.site).where(serving)):
                placed.setdefault(name, set()).add(site)
        if others := moved - present.keys():
            present |= {name: sites for name, sites in self.present().items() if name in others}
        return {name: (sites & placed.get(name, sites)) or sites for name, sites in present.items()}

    def present(self, since: int = 0) -> dict[str, set[int]]:
        """The sites at which services are present: replicas accept there, or an operator said so. Of every service of which that
        has changed since that version."""
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

    def report(self, site: int, replicas: Sequence[Replica], now: float) -> None:
        """All replicas that the dispatchers of a site know at Unix time ``now``; others are forgotten.

        A service is deployed at a site where a replica accepts connections (3.4.2, 6.2): one whose replicas are all overloaded or
        gone is left out. What an operator said of a service holds until its replicas report.
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
        table = schema.replica_deployment
        query = sql.select(table).order_by(table.c.site, table.c.sid, table.c.service)
        with self.reading() as connection:
            return [
                Replica(row.site, row.sid, row.service, row.address, row.load, row.weight, row.accepting)
                for row in connection.execute(query)
            ]

    def register(self, services: Iterable[Service]) -> None:
        """Services with their redundancy, policy and ALPN, and the number that they must have; 0: any, or as it is.

        A service that has such a number by chance gets another."""
        table, wanted = schema.service, {service.name: service for service in services}
        if not wanted:
            return
        with self._writing() as (connection, version):
            self._add_services(connection, wanted.keys(), version)
            for one in wanted.values():
                values = {"redundancy": one.redundancy, "policy": one.policy, "alpn": " ".join(one.alpn), "version": version}
                if one.number:
                    free = (connection.execute(sql.select(sql.func.max(table.c.number))).scalar() or 0) + 1
                    others = (table.c.number == one.number) & (table.c.name != one.name)
                    connection.execute(sql.update(table).where(others).values(number=max(free, one.number + 1), version=version))
                    values["number"] = one.number
                connection.execute(sql.update(table).where(table.c.name == one.name).values(values))

    def services(self) -> dict[str, Service]:
        query = sql.select(schema.service).order_by(schema.service.c.number)
        with self.reading() as connection:
            return {
                row.name: Service(row.name, row.number, row.redundancy, row.policy, tuple(row.alpn.split()))
                for row in connection.execute(query)
            }

    def version(self) -> int:
        """The number of the last writing transaction."""
        with self.reading() as connection:
            query = sql.select(schema.counter.c.value).where(schema.counter.c.name == "sequence")
            return int(connection.execute(query).scalar_one())

    # Who computes

    def lead(self, holder: str, now: float, seconds: float, gone: Collection[int] = ()) -> int | None:
        """Take or keep the lease for so long. Its version if this one has it, else None. A holder is called SITE@ANYTHING;
        that of a site that is ``gone`` has it no longer.
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
        """A transaction for what was computed. Raises LeaseLostError, and writes nothing, if the lease has changed since."""
        table = schema.lease
        with self._writing() as (connection, version):
            mine = (table.c.name == LEASE) & (table.c.holder == holder) & (table.c.version == lease_version)
            if connection.execute(sql.update(table).where(mine).values(holder=holder)).rowcount != 1:
                raise LeaseLostError("another controller has the lease of the mapping; this one stands by")
            yield connection, version

    def upsert(self, connection: sql.Connection, table: sql.Table, rows: Sequence[Mapping[str, Any]], version: int) -> None:
        """For use within `publishing`."""
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
