# SPDX-License-Identifier: Apache-2.0
"""The part of the store about demand and placement, through which the sites' controllers exchange both (see `schema`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sql

from frontage.mapping.compute.prefixes import Prefix
from frontage.mapping.demand.moves import SiteStage, SiteStages, Stage
from frontage.mapping.demand.reports import Report, SiteReports
from frontage.mapping.demand.waiting import HandshakeWait
from frontage.mapping.store import schema
from frontage.mapping.store.database import Database


class DemandStore(Database):
    """Load reports, handshake waits, placements and unmapped client prefixes. Raises StoreError."""

    def add_reports(self, site: int, reports: Iterable[Report], now: float) -> None:
        """Add the reports of a site at Unix time ``now``: all of them, or none."""
        table = schema.load_report
        with self._writing() as (connection, version):
            for report in reports:
                insert = self._insert(table)
                changes: dict[str, Any] = {
                    "rate": insert.excluded.rate,
                    "requests": table.c.requests + insert.excluded.requests,
                    "seconds": table.c.seconds + insert.excluded.seconds,
                    "reports": table.c.reports + 1,
                    "reported_at": now,
                    "version": version,
                }
                if report.regions is not None:
                    changes["regions"] = insert.excluded.regions
                values = {"service": report.service, "site": site, "rate": report.rate, "requests": report.requests}
                values |= {"seconds": report.seconds, "reports": 1}
                values |= {"regions": json.dumps(report.regions or {}), "reported_at": now, "version": version}
                statement = insert.on_conflict_do_update(index_elements=[table.c.service, table.c.site], set_=changes)
                connection.execute(statement, values)

    def reports(self) -> dict[str, dict[int, SiteReports]]:
        """Return the sums of all load reports by service and site."""
        table = schema.load_report
        result: dict[str, dict[int, SiteReports]] = {}
        with self.reading() as connection:
            for row in connection.execute(sql.select(table)):
                regions = {int(region): float(rate) for region, rate in json.loads(row.regions).items()}
                total = SiteReports(regions, row.rate, row.requests, row.seconds, row.reports)
                result.setdefault(row.service, {})[row.site] = total
        return result

    def add_waits(self, waits: Iterable[HandshakeWait]) -> None:
        """Add the waits of handshakes. Without any, nothing is written."""
        rows = [
            {"prefix": wait.network, "site": wait.site, "waited_us": wait.microseconds, "handshakes": wait.handshakes}
            for wait in waits
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

    def take_waits(self) -> list[HandshakeWait]:
        """Return and delete the waits, so that each is returned once."""
        table = schema.handshake_wait
        with self._writing() as (connection, _):
            columns = table.c.prefix, table.c.site, table.c.waited_us, table.c.handshakes
            return [HandshakeWait(*row) for row in connection.execute(sql.delete(table).returning(*columns))]

    def placements(self) -> dict[str, dict[int, SiteStage]]:
        """Return the stages of all placed services by service and site."""
        table = schema.service_placement
        result: dict[str, dict[int, SiteStage]] = {}
        with self.reading() as connection:
            for row in connection.execute(sql.select(table).where(table.c.stage != Stage.GONE)):
                result.setdefault(row.name, {})[row.site] = SiteStage(Stage(row.stage), row.since)
        return result

    def write_placement(
        self, connection: sql.Connection, version: int, service: str, before: SiteStages, after: SiteStages
    ) -> None:
        """Write the changed stages of a service. For use within `publishing`."""
        rows = [
            {"name": service, "site": site, "stage": str(item.stage), "since": item.since}
            for site, item in after.items()
            if before.get(site) != item
        ]
        self._upsert(connection, schema.service_placement, rows, version)

    def remove_placements(self, connection: sql.Connection, version: int, services: Iterable[str]) -> None:
        """Let these services run wherever they have replicas again. For use within `publishing`."""
        names = list(services)
        table = schema.service_placement
        connection.execute(sql.update(table).where(table.c.name.in_(names)).values(stage=str(Stage.GONE), version=version))
        connection.execute(sql.delete(schema.placement_view).where(schema.placement_view.c.name.in_(names)))

    def documents(self) -> dict[str, dict[str, Any]]:
        """Return the placement documents of the last epoch by service."""
        table = schema.placement_view
        with self.reading() as connection:
            return {row.name: json.loads(row.document) for row in connection.execute(sql.select(table).order_by(table.c.name))}

    def write_documents(self, connection: sql.Connection, version: int, documents: Mapping[str, Mapping[str, Any]]) -> None:
        """Write placement documents. For use within `publishing`."""
        rows = [{"name": name, "document": json.dumps(document)} for name, document in documents.items()]
        self._upsert(connection, schema.placement_view, rows, version)

    def add_client_prefixes(self, prefixes: Iterable[Prefix], now: float, limit: int) -> int:
        """Remember prefixes of clients that are in no region, ``limit`` of them at most. Returns the number left out."""
        table = schema.client_prefix
        names = sorted({str(prefix) for prefix in prefixes})
        with self._writing() as (connection, version):
            have = set(connection.execute(sql.select(table.c.prefix)).scalars())
            known, new = [name for name in names if name in have], [name for name in names if name not in have]
            kept = new[: max(0, limit - len(have))]
            self._upsert(connection, table, [{"prefix": name, "seen_at": now} for name in (*known, *kept)], version)
        return len(new) - len(kept)

    def expire_client_prefixes(self, before: float) -> None:
        """Forget the prefixes last seen before that Unix time. Without any, nothing is written."""
        table = schema.client_prefix
        old = table.c.seen_at < before
        with self.reading() as connection:
            some = connection.execute(sql.select(table.c.prefix).where(old).limit(1)).first()
        if some is not None:
            with self._writing() as (connection, _):
                connection.execute(sql.delete(table).where(old))
