"""The store: what was measured and reported, by several controllers at once (`database` says how). ``since`` is a version."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sql

from frontage.demand.moves import Stage
from frontage.demand.store import DemandStore
from frontage.enduser import schema
from frontage.enduser.database import LEASE, LeaseLostError
from frontage.enduser.prefixes import Prefix, parse
from frontage.enduser.values import Measurements

_IN_ONE_QUERY = 1000
"""Values in a list of one statement, which databases limit; and rows that are fetched at once."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Round trips between a client prefix and a site: the least of ``count``, in microseconds."""

    prefix: Prefix
    site: int
    rtt_us: float
    count: int = 1
    source: str = "passive"


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica of one service, as its site's dispatcher reports it."""

    site: int
    sid: int
    service: str
    address: str
    load: float
    weight: float
    accepting: bool


@dataclass(frozen=True, slots=True)
class Service:
    """What is known of a service besides where it is."""

    name: str
    number: int
    redundancy: int = 1
    policy: str = "latency"
    alpn: tuple[str, ...] = ("h3",)


class Store(DemandStore):
    """The tables of `schema`. Raises StoreError."""

    def __init__(self, url: str, *, window: float = 300.0):
        """``window``: seconds over which the least RTT counts."""
        super().__init__(url)
        self._window = window

    # What is measured and reported

    def record(self, samples: Iterable[Sample], now: float) -> None:
        """Take in RTTs at Unix time ``now``. The least of this window and of the one before counts: it forgets what the network
        no longer does, and whoever reports in whatever order, twice or late, the result is the same."""
        table, window = schema.latency_measurement, int(now // self._window)
        cells: dict[tuple[str, int, str], tuple[float, int]] = {}
        for sample in samples:
            key = str(sample.prefix), sample.site, sample.source
            least, count = cells.get(key, (sample.rtt_us, 0))
            cells[key] = min(least, sample.rtt_us), count + sample.count
        if not cells:
            return
        insert = self._insert(table)
        new, old = insert.excluded, table.c
        same, next_ = old.time_window >= new.time_window, old.time_window == new.time_window - 1
        statement = insert.on_conflict_do_update(
            index_elements=[old.prefix, old.site, old.source],
            set_={
                "previous_us": sql.case((same, old.previous_us), (next_, old.rtt_us), else_=sql.null()),
                "rtt_us": sql.case((same & (old.rtt_us < new.rtt_us), old.rtt_us), else_=new.rtt_us),
                "time_window": sql.case((same, old.time_window), else_=new.time_window),
                "count": old.count + new.count,
                "measured_at": sql.case((old.measured_at > new.measured_at, old.measured_at), else_=new.measured_at),
                "version": new.version,
            },
        )
        with self._writing() as (connection, version):
            rows = [
                {"prefix": prefix, "site": site, "source": source, "rtt_us": rtt, "count": count, "time_window": window}
                | {"measured_at": now, "version": version}
                for (prefix, site, source), (rtt, count) in cells.items()
            ]
            connection.execute(statement, rows)

    def measurements(self, since: int = 0) -> Measurements:
        """The RTTs of every prefix and site that has news since that version."""
        table = schema.latency_measurement
        query = self._least()
        if since:
            news = sql.select(table.c.prefix, table.c.site).where(table.c.version > since)
            query = query.where(sql.tuple_(table.c.prefix, table.c.site).in_(news))
        with self.reading() as connection:
            return _measurements(connection.execute(query))

    @staticmethod
    def _least() -> sql.Select[Any]:
        """(prefix, site, microseconds): the least of all sources and both windows."""
        table = schema.latency_measurement
        value = sql.case((table.c.previous_us < table.c.rtt_us, table.c.previous_us), else_=table.c.rtt_us)
        return sql.select(table.c.prefix, table.c.site, sql.func.min(value)).group_by(table.c.prefix, table.c.site)

    def rtts(self, prefixes: Iterable[Prefix]) -> list[tuple[Prefix, int, str, float, int, float]]:
        """What was measured under exactly these prefixes: (prefix, site, source, microseconds, samples, Unix time of the last)."""
        table = schema.latency_measurement
        names = ("prefix", "site", "source", "rtt_us", "previous_us", "count", "measured_at")
        query = (
            sql.select(*(table.c[name] for name in names))
            .where(table.c.prefix.in_([str(prefix) for prefix in prefixes]))
            .order_by(table.c.site)
        )
        with self.reading() as connection:
            return [
                (parse(text), site, source, min(least, previous or least), count, when)
                for text, site, source, least, previous, count, when in connection.execute(query)
            ]

    def unmeasured(self, site: int, after: float, behind: str, limit: int) -> list[str]:
        """Client prefixes as text, in its order and behind ``behind``, with news since Unix time ``after`` but none of ``site``."""
        table, seen = schema.latency_measurement, schema.client_prefix
        fresh = table.c.measured_at > after
        have = sql.select(table.c.prefix).where((table.c.site == site) & fresh)
        news = sql.union(
            sql.select(table.c.prefix).where(fresh), sql.select(seen.c.prefix).where(seen.c.seen_at > after)
        ).subquery()
        query = (
            sql.select(news.c.prefix)
            .where((news.c.prefix > behind) & news.c.prefix.not_in(have))
            .order_by(news.c.prefix)
            .limit(limit)
        )
        with self.reading() as connection:
            return list(connection.execute(query).scalars())

    def expire(self, before: float) -> Measurements:
        """Forget what was last measured before that Unix time. Returns the cells with what is left of them: NaN if nothing."""
        table = schema.latency_measurement
        with self._writing() as (connection, _):
            gone = connection.execute(
                sql.delete(table).where(table.c.measured_at < before).returning(table.c.prefix, table.c.site)
            ).all()
            cells = {(parse(prefix), site): math.nan for prefix, site in gone}
            prefixes = sorted({prefix for prefix, _ in gone})
            for i in range(0, len(prefixes), _IN_ONE_QUERY):
                left = connection.execute(self._least().where(table.c.prefix.in_(prefixes[i : i + _IN_ONE_QUERY])))
                cells |= {cell: rtt for cell, rtt in _measurements(left).cells.items() if cell in cells}
        return Measurements.of(cells)

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


def _measurements(found: sql.CursorResult[Any]) -> Measurements:
    """Of (prefix, site, microseconds); millions of them fit, so nothing is kept as an object."""
    numbers: dict[str, int] = {}
    rows, sites, rtts = array("q"), array("q"), array("f")
    for some in found.partitions(_IN_ONE_QUERY):
        for text, site, rtt in some:
            rows.append(numbers.setdefault(text, len(numbers)))
            sites.append(site)
            rtts.append(rtt)
    prefixes = [parse(text) for text in numbers]
    return Measurements(prefixes, np.array(rows, np.int64), np.array(sites, np.int64), np.array(rtts, np.float32))
