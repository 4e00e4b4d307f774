# SPDX-License-Identifier: Apache-2.0
"""SQLite or PostgreSQL: the connection, the schema's version, and numbered transactions.

Every writing transaction first takes the next number of one counter and marks its rows with it. The counter's row stays locked until
the transaction ends, so numbers become visible in order: a reader that asks for rows above a number never misses one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from frontage.mapping.errors import StoreError
from frontage.mapping.store import schema

LEASE = "compute"
"""The name of the lease that the computing controller holds."""


class Database:
    """One connection pool. Raises StoreError if the database cannot be opened or has another schema."""

    def __init__(self, url: str):
        try:
            # Check pooled connections before use: the server may have been restarted.
            self.engine = sql.create_engine(url, pool_pre_ping=True)
            if self.engine.dialect.name not in ("sqlite", "postgresql"):
                raise StoreError(f"{url}: unknown store: give sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE")
            if self.engine.dialect.name == "sqlite":
                _begin_immediately(self.engine)
            with self.engine.begin() as connection:
                if self.engine.dialect.name == "postgresql":
                    # Two controllers that create the tables at the same time would fail.
                    connection.execute(sql.text("SELECT pg_advisory_xact_lock(4770)"))
                schema.metadata.create_all(connection)
                values = [{"name": "schema", "value": schema.VERSION}, {"name": "sequence", "value": 0}]
                connection.execute(self._insert(schema.counter).values(values).on_conflict_do_nothing())
                vacant = {"name": LEASE, "holder": "", "expires_at": 0.0, "version": 0}
                connection.execute(self._insert(schema.lease).values(vacant).on_conflict_do_nothing())
                found = connection.execute(sql.select(schema.counter.c.value).where(schema.counter.c.name == "schema")).scalar_one()
        except (ArgumentError, ModuleNotFoundError) as error:
            raise StoreError(f"{url}: {error}: give sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE") from None
        except SQLAlchemyError as error:
            raise StoreError(f"{self.engine.url}: {_reason(error)}: start the server, or make the folder writable") from None
        if found != schema.VERSION:
            raise StoreError(
                f"{self.engine.url}: schema {found}, but this program has schema {schema.VERSION}: "
                "export with the program that created the store, and import into a new store"
            )

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[sql.Connection]:
        """Open a transaction. Raises StoreError."""
        try:
            with self.engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise StoreError(f"{self.engine.url}: {_reason(error)}") from None

    @contextmanager
    def _writing(self) -> Iterator[tuple[sql.Connection, int]]:
        """Open a transaction with the next number."""
        table = schema.counter
        take = sql.update(table).where(table.c.name == "sequence").values(value=table.c.value + 1).returning(table.c.value)
        with self.reading() as connection:
            yield connection, connection.execute(take).scalar_one()

    def _insert(self, table: sql.Table) -> Any:
        """Return the dialect's own INSERT: both have ON CONFLICT, each in its own class."""
        return postgresql.insert(table) if self.engine.dialect.name == "postgresql" else sqlite.insert(table)

    def _upsert(self, connection: sql.Connection, table: sql.Table, rows: Sequence[Mapping[str, Any]], version: int) -> None:
        if not rows:
            return
        insert = self._insert(table)
        keys = [column.name for column in table.primary_key]
        rest = {column.name: insert.excluded[column.name] for column in table.c if column.name not in keys}
        connection.execute(
            insert.on_conflict_do_update(index_elements=keys, set_=rest), [{**row, "version": version} for row in rows]
        )


def _begin_immediately(engine: sql.Engine) -> None:
    """Make SQLite's transactions take the write lock at their start, where they can wait for it, and not fail in their middle."""

    @sql.event.listens_for(engine, "connect")
    def connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA busy_timeout = 10000")

    @sql.event.listens_for(engine, "begin")
    def begin(connection: sql.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _reason(error: SQLAlchemyError) -> str:
    return str(getattr(error, "orig", None) or error).splitlines()[0]
