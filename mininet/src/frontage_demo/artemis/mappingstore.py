"""What the sites' controllers know of the mapping (docs/mapping.md), by a look into the store that they share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sql
from frontage.enduser import schema
from frontage.enduser.database import LEASE
from frontage.enduser.prefixes import parse
from frontage.enduser.store import Store
from frontage.enduser.tables import Tables, read

from .names import ZONE
from .siteconfig import STORE

PREFIX_LENGTH = 48
"""Under which clients are measured."""


@dataclass(frozen=True)
class Rtt:
    """What a site has measured of a client's network."""

    site: int
    source: str
    """passive, in handshakes, or active, by probes."""
    milliseconds: float
    """The least."""
    count: int


@contextmanager
def _opened(folder: Path) -> Iterator[Store]:
    store = Store(f"sqlite:///{folder / STORE}")
    try:
        yield store
    finally:
        store.close()


def version(folder: Path, sites: int) -> int | None:
    """Of the mapping, by which dispatchers call it, too; None before it knows the service to be at so many sites."""
    with _opened(folder) as store:
        tables = read(store, Tables())
    deployment = tables.deployments.get(tables.services.get(ZONE, 0))
    return tables.content if deployment is not None and len(deployment.sites) == sites else None


def rtts(folder: Path, client: str) -> list[Rtt]:
    """Of a client's address, by site and source."""
    with _opened(folder) as store:
        rows = store.rtts([parse(client).shortened(PREFIX_LENGTH)])
    return sorted(
        (Rtt(site, source, rtt / 1e3, count) for _, site, source, rtt, count, _ in rows),
        key=lambda rtt: (rtt.site, rtt.source),
    )


def leader(folder: Path) -> int:
    """The site whose controller computes."""
    query = sql.select(schema.lease.c.holder).where(schema.lease.c.name == LEASE)
    with _opened(folder) as store, store.reading() as connection:
        holder: str = connection.execute(query).scalar_one()
    return int(holder.partition("@")[0])
