"""What the sites' controllers tell each other of demand and placement, in the store that they share (enduser.schema)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sql

from frontage.mapping.compute.prefixes import Prefix
from frontage.mapping.demand.moves import Place, Places, Stage
from frontage.mapping.demand.reports import Report, Told
from frontage.mapping.demand.waiting import Wait
from frontage.mapping.store import schema
from frontage.mapping.store.database import Database


class DemandStore(Database):
    """The part of the store about demand. Raises StoreError."""

    def tell(self, site: int, reports: Iterable[Report], now: float) -> None:
        """Reports of that site at Unix time ``now``: all of them, or none."""
        table = schema.load_report
        with self._writing() as (connection, version):
            for one in reports:
                insert = self._insert(table)
                changes: dict[str, Any] = {
                    "rate": insert.excluded.rate,
                    "requests": table.c.requests + insert.excluded.requests,
                    "seconds": table.c.seconds + insert.excluded.seconds,
                    "reports": table.c.reports + 1,
                    "reported_at": now,
                    "version": version,
                }
                if one.regions is not None:
                    changes["regions"] = insert.excluded.regions
                values = {"service": one.service, "site": site, "rate": one.rate, "requests": one.requests}
                values |= {"seconds": one.seconds, "reports": 1}
                values |= {"regions": json.dumps(one.regions or {}), "reported_at": now, "version": version}
                statement = insert.on_conflict_do_update(index_elements=[table.c.service, table.c.site], set_=changes)
                connection.execute(statement, values)

    def told(self) -> dict[str, dict[int, Told]]:
        """By service and site."""
        table = schema.load_report
        found: dict[str, dict[int, Told]] = {}
        with self.reading() as connection:
            for row in connection.execute(sql.select(table)):
                regions = {int(region): float(rate) for region, rate in json.loads(row.regions).items()}
                found.setdefault(row.service, {})[row.site] = Told(regions, row.rate, row.requests, row.seconds, row.reports)
        return found

    def wait(self, waits: Iterable[Wait]) -> None:
        """Add what handshakes waited. Writes only if there are such."""
        rows = [
            {"prefix": one.network, "site": one.site, "waited_us": one.microseconds, "handshakes": one.handshakes} for one in waits
        ]
        if not rows:
            return
        table = schema.handshake_wait
        insert = self._insert(table)
        sums = {name: table.c[name] + insert.excluded[name] for name in ("waited_us", "handshakes")}
        keys, changes = [table.c.prefix, table.c.site], sums | {"version": insert.excluded.version}
        with self._writing() as (connection, version):
            statement = insert.on_conflict_do_update(index_elements=keys, set_=changes)
            connection.execute(statement, [row | {"version": version} for row in rows])

    def take_waits(self) -> list[Wait]:
        """What was added since it was last taken: nobody gets it twice."""
        table = schema.handshake_wait
        with self._writing() as (connection, _):
            columns = table.c.prefix, table.c.site, table.c.waited_us, table.c.handshakes
            return [Wait(*row) for row in connection.execute(sql.delete(table).returning(*columns))]

    def places(self) -> dict[str, dict[int, Place]]:
        """By service and site; of services that were placed."""
        table = schema.service_placement
        found: dict[str, dict[int, Place]] = {}
        with self.reading() as connection:
            for row in connection.execute(sql.select(table).where(table.c.stage != Stage.GONE)):
                found.setdefault(row.name, {})[row.site] = Place(Stage(row.stage), row.since)
        return found

    def place(self, connection: sql.Connection, version: int, service: str, before: Places, after: Places) -> None:
        """For use within `publishing`."""
        rows = [
            {"name": service, "site": site, "stage": str(one.stage), "since": one.since}
            for site, one in after.items()
            if before.get(site) != one
        ]
        self._upsert(connection, schema.service_placement, rows, version)

    def unplace(self, connection: sql.Connection, version: int, services: Iterable[str]) -> None:
        """These services are wherever they have replicas again. For use within `publishing`."""
        names = list(services)
        table = schema.service_placement
        connection.execute(sql.update(table).where(table.c.name.in_(names)).values(stage=str(Stage.GONE), version=version))
        connection.execute(sql.delete(schema.placement_view).where(schema.placement_view.c.name.in_(names)))

    def views(self) -> dict[str, dict[str, Any]]:
        """What was written of each service at the last epoch."""
        table = schema.placement_view
        with self.reading() as connection:
            return {row.name: json.loads(row.document) for row in connection.execute(sql.select(table).order_by(table.c.name))}

    def view(self, connection: sql.Connection, version: int, documents: Mapping[str, Mapping[str, Any]]) -> None:
        """For use within `publishing`."""
        rows = [{"name": name, "document": json.dumps(document)} for name, document in documents.items()]
        self._upsert(connection, schema.placement_view, rows, version)

    def saw(self, prefixes: Iterable[Prefix], now: float, limit: int) -> int:
        """Note prefixes of clients who are in no region. Returns how many there was no room for: ``limit`` are remembered."""
        table = schema.client_prefix
        names = sorted({str(prefix) for prefix in prefixes})
        with self._writing() as (connection, version):
            have = set(connection.execute(sql.select(table.c.prefix)).scalars())
            known, new = [name for name in names if name in have], [name for name in names if name not in have]
            kept = new[: max(0, limit - len(have))]
            self._upsert(connection, table, [{"prefix": name, "seen_at": now} for name in (*known, *kept)], version)
        return len(new) - len(kept)

    def forget_seen(self, before: float) -> None:
        """Forget prefixes that were last seen before that Unix time. Writes only if there are such."""
        table = schema.client_prefix
        old = table.c.seen_at < before
        with self.reading() as connection:
            some = connection.execute(sql.select(table.c.prefix).where(old).limit(1)).first()
        if some is not None:
            with self._writing() as (connection, _):
                connection.execute(sql.delete(table).where(old))
