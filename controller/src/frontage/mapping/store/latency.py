"""The part of the store about round trips: what was measured between client prefixes and sites."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from typing import Any

import numpy as np
import sqlalchemy as sql

from frontage.mapping.compute.prefixes import Prefix, parse
from frontage.mapping.compute.values import Measurements, Sample
from frontage.mapping.store import schema
from frontage.mapping.store.database import Database

_IN_ONE_QUERY = 1000
"""Values in a list of one statement, which databases limit; and rows that are fetched at once."""
_GONE = math.inf
"""The RTT of what has expired, so that those who ask for news learn of that, too."""
TOLD = 3600.0
"""Seconds for which they can, at least."""


class LatencyStore(Database):
    """Raises StoreError."""

    def __init__(self, url: str, *, window: float = 300.0):
        """``window``: seconds over which the least RTT counts."""
        super().__init__(url)
        self._window = window

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
        """The RTTs of every prefix and site that has news since that version; NaN where these have expired."""
        table = schema.latency_measurement
        query = self._least()
        if not since:
            query = query.where(table.c.rtt_us < _GONE)
        else:
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

    def known(self, prefixes: Iterable[Prefix]) -> dict[tuple[Prefix, int], float]:
        """What counts of exactly these prefixes, by site."""
        table, names = schema.latency_measurement, sorted({str(prefix) for prefix in prefixes})
        found: dict[tuple[Prefix, int], float] = {}
        with self.reading() as connection:
            for i in range(0, len(names), _IN_ONE_QUERY):
                here = table.c.prefix.in_(names[i : i + _IN_ONE_QUERY]) & (table.c.rtt_us < _GONE)
                found |= _measurements(connection.execute(self._least().where(here))).cells
        return found

    def rtts(self, prefixes: Iterable[Prefix]) -> list[tuple[Prefix, int, str, float, int, float]]:
        """What was measured under exactly these prefixes: (prefix, site, source, microseconds, samples, Unix time of the last)."""
        table = schema.latency_measurement
        names = ("prefix", "site", "source", "rtt_us", "previous_us", "count", "measured_at")
        query = (
            sql.select(*(table.c[name] for name in names))
            .where(table.c.prefix.in_([str(prefix) for prefix in prefixes]) & (table.c.rtt_us < _GONE))
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
        fresh = (table.c.measured_at > after) & (table.c.rtt_us < _GONE)
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

    def expire(self, now: float, max_age: float) -> None:
        """Forget what at Unix time ``now`` is older than so many seconds, and tell of it as news. Writes only if there is such."""
        table, window = schema.latency_measurement, int(now // self._window)
        stale = table.c.measured_at < now - max_age
        old = stale & (table.c.rtt_us < _GONE)
        told = stale & (table.c.rtt_us == _GONE) & (table.c.time_window < int((now - TOLD) // self._window))
        with self.reading() as connection:
            if connection.execute(sql.select(table.c.site).where(old | told).limit(1)).first() is None:
                return
        with self._writing() as (connection, version):
            connection.execute(sql.delete(table).where(told))
            gone = {"rtt_us": _GONE, "previous_us": None, "time_window": window, "version": version}
            connection.execute(sql.update(table).where(old).values(gone))


def _measurements(found: sql.CursorResult[Any]) -> Measurements:
    """Of (prefix, site, microseconds); millions of them fit, so nothing is kept as an object."""
    numbers: dict[str, int] = {}
    rows, sites, rtts = array("q"), array("q"), array("f")
    for some in found.partitions(_IN_ONE_QUERY):
        for text, site, rtt in some:
            rows.append(numbers.setdefault(text, len(numbers)))
            sites.append(site)
            rtts.append(rtt if rtt < _GONE else math.nan)
    prefixes = [parse(text) for text in numbers]
    return Measurements(prefixes, np.array(rows, np.int64), np.array(sites, np.int64), np.array(rtts, np.float32))
