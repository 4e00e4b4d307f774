# SPDX-License-Identifier: Apache-2.0
"""The part of the store about latency: the RTTs measured between client prefixes and sites."""

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

_QUERY_VALUES = 1000
"""Values in the list of one statement, which databases limit; also the rows fetched at a time."""
_EXPIRED = math.inf
"""The RTT of an expired row, which stays so that readers of changes see that it expired."""
EXPIRED_RETENTION = 3600.0
"""Seconds for which expired rows stay at least."""


class LatencyStore(Database):
    """Measured RTTs. Raises StoreError."""

    def __init__(self, url: str, *, window: float = 300.0):
        """``window``: seconds over which the minimum RTT is taken."""
        super().__init__(url)
        self._window = window

    def add_samples(self, samples: Iterable[Sample], now: float) -> None:
        """Add RTTs measured at Unix time ``now``.

        The minimum of this window and the one before counts. So old RTTs expire, and the result does not depend on the order in
        which controllers report, nor on repeated or late reports.
        """
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
        """Return the RTTs of every prefix and site that changed after version ``since``; NaN where the RTT has expired."""
        table = schema.latency_measurement
        query = self._least()
        if not since:
            query = query.where(table.c.rtt_us < _EXPIRED)
        else:
            changed = sql.select(table.c.prefix, table.c.site).where(table.c.version > since)
            query = query.where(sql.tuple_(table.c.prefix, table.c.site).in_(changed))
        with self.reading() as connection:
            return _measurements(connection.execute(query))

    @staticmethod
    def _least() -> sql.Select[Any]:
        """Select (prefix, site, microseconds): the minimum over all sources and both windows."""
        table = schema.latency_measurement
        value = sql.case((table.c.previous_us < table.c.rtt_us, table.c.previous_us), else_=table.c.rtt_us)
        return sql.select(table.c.prefix, table.c.site, sql.func.min(value)).group_by(table.c.prefix, table.c.site)

    def known_rtts(self, prefixes: Iterable[Prefix]) -> dict[tuple[Prefix, int], float]:
        """Return the minimum RTTs of exactly these prefixes by prefix and site."""
        table, names = schema.latency_measurement, sorted({str(prefix) for prefix in prefixes})
        result: dict[tuple[Prefix, int], float] = {}
        with self.reading() as connection:
            for i in range(0, len(names), _QUERY_VALUES):
                wanted = table.c.prefix.in_(names[i : i + _QUERY_VALUES]) & (table.c.rtt_us < _EXPIRED)
                result |= _measurements(connection.execute(self._least().where(wanted))).cells
        return result

    def rtts(self, prefixes: Iterable[Prefix]) -> list[tuple[Prefix, int, str, float, int, float]]:
        """Return the measurements of exactly these prefixes, by site.

        Each is (prefix, site, source, microseconds, number of samples, Unix time of the last sample).
        """
        table = schema.latency_measurement
        names = ("prefix", "site", "source", "rtt_us", "previous_us", "count", "measured_at")
        query = (
            sql.select(*(table.c[name] for name in names))
            .where(table.c.prefix.in_([str(prefix) for prefix in prefixes]) & (table.c.rtt_us < _EXPIRED))
            .order_by(table.c.site)
        )
        with self.reading() as connection:
            return [
                (parse(text), site, source, min(least, previous or least), count, when)
                for text, site, source, least, previous, count, when in connection.execute(query)
            ]

    def unmeasured(self, site: int, after: float, cursor: str, limit: int) -> list[str]:
        """Return client prefixes that were active or measured after Unix time ``after``, but not by ``site``.

        They are text, in text order, and start after ``cursor``.
        """
        table, seen = schema.latency_measurement, schema.client_prefix
        fresh = (table.c.measured_at > after) & (table.c.rtt_us < _EXPIRED)
        have = sql.select(table.c.prefix).where((table.c.site == site) & fresh)
        active = sql.union(
            sql.select(table.c.prefix).where(fresh), sql.select(seen.c.prefix).where(seen.c.seen_at > after)
        ).subquery()
        query = (
            sql.select(active.c.prefix)
            .where((active.c.prefix > cursor) & active.c.prefix.not_in(have))
            .order_by(active.c.prefix)
            .limit(limit)
        )
        with self.reading() as connection:
            return list(connection.execute(query).scalars())

    def expire(self, now: float, max_age: float) -> None:
        """Mark RTTs that at Unix time ``now`` are older than ``max_age`` seconds as expired, and delete those long marked.

        Without any, nothing is written.
        """
        table, window = schema.latency_measurement, int(now // self._window)
        stale = table.c.measured_at < now - max_age
        old = stale & (table.c.rtt_us < _EXPIRED)
        retained = int((now - EXPIRED_RETENTION) // self._window)
        done = stale & (table.c.rtt_us == _EXPIRED) & (table.c.time_window < retained)
        with self.reading() as connection:
            if connection.execute(sql.select(table.c.site).where(old | done).limit(1)).first() is None:
                return
        with self._writing() as (connection, version):
            connection.execute(sql.delete(table).where(done))
            values = {"rtt_us": _EXPIRED, "previous_us": None, "time_window": window, "version": version}
            connection.execute(sql.update(table).where(old).values(values))


def _measurements(found: sql.CursorResult[Any]) -> Measurements:
    """Collect rows of (prefix, site, microseconds) in arrays, because there may be millions."""
    numbers: dict[str, int] = {}
    rows, sites, rtts = array("q"), array("q"), array("f")
    for part in found.partitions(_QUERY_VALUES):
        for text, site, rtt in part:
            rows.append(numbers.setdefault(text, len(numbers)))
            sites.append(site)
            rtts.append(rtt if rtt < _EXPIRED else math.nan)
    prefixes = [parse(text) for text in numbers]
    return Measurements(prefixes, np.array(rows, np.int64), np.array(sites, np.int64), np.array(rtts, np.float32))
