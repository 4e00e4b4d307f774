# SPDX-License-Identifier: Apache-2.0
"""Reads what the sites' controllers know of the mapping (docs/mapping.md) from the store that they share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sql

from frontage.mapping.compute.prefixes import parse
from frontage.mapping.store import schema
from frontage.mapping.store.database import LEASE
from frontage.mapping.store.store import Store
from frontage.mapping.store.tables import Tables, read

from .names import ZONE
from .siteconfig import STORE

PREFIX_LENGTH = 48
"""Length of the prefixes under which the store keeps clients."""


@dataclass(frozen=True)
class Rtt:
    """A site's measurement of a client's network."""

    site: int
    source: str
    """`passive` from handshakes, `active` from probes."""
    milliseconds: float
    """The minimum."""
    count: int


@dataclass(frozen=True)
class Placed:
    """The result of placement at its last epoch."""

    epoch: int
    """Number of the epoch."""
    move: dict[str, int | None]
    """Epochs of the last move; empty before the first one.

    `shown`: demand first asked for the move. `decided`: placement decided it. `active`: the last epoch that had ended when
    first flights went to the new site.
    """
    handshakes: int
    """Handshakes since the last move."""
    shares: dict[int, float]
    """Shares of the demand, by region."""
    serving: frozenset[int]
    """Sites that get first flights now."""
    wanted: frozenset[int]
    """Sites that are to get first flights."""


@contextmanager
def _opened(folder: Path) -> Iterator[Store]:
    store = Store(f"sqlite:///{folder / STORE}")
    try:
        yield store
    finally:
        store.close()


def version(folder: Path, sites: int) -> int | None:
    """Return the version of the mapping and of dispatchers' tables; None until it has the service at `sites` sites."""
    with _opened(folder) as store:
        tables = read(store, Tables())
    deployment = tables.deployments.get(tables.services.get(ZONE, 0))
    return tables.content if deployment is not None and len(deployment.sites) == sites else None


def rtts(folder: Path, client: str) -> list[Rtt]:
    """Return the measurements of a client's address, by site and source."""
    with _opened(folder) as store:
        rows = store.rtts([parse(client).shortened(PREFIX_LENGTH)])
    return sorted(
        (Rtt(site, source, rtt / 1e3, count) for _, site, source, rtt, count, _ in rows),
        key=lambda rtt: (rtt.site, rtt.source),
    )


def placed(folder: Path) -> Placed | None:
    """Return the service's placement; None before the first one."""
    with _opened(folder) as store:
        view, placements = store.documents().get(ZONE), store.placements().get(ZONE, {})
    if view is None or "demand" not in view:
        return None
    shares = {entry["region"]: entry["share"] for entry in view["demand"]}
    serving = frozenset(site for site, placement in placements.items() if placement.stage.serves)
    wanted = frozenset(site for site, placement in placements.items() if placement.stage.wanted)
    return Placed(view["number"], view["move"] or {}, view["since"], shares, serving, wanted)


@dataclass(frozen=True)
class Known:
    """The store's knowledge of a client's network."""

    seen: bool
    """True if a switch's digest reported it while it was in no region."""
    region: int
    """The client's region; 0 for none."""


def known(folder: Path, client: str) -> Known:
    """Return what the store knows of a client's address."""
    prefix = parse(client).shortened(PREFIX_LENGTH)
    query = sql.select(schema.client_prefix.c.prefix).where(schema.client_prefix.c.prefix == str(prefix))
    with _opened(folder) as store:
        with store.reading() as connection:
            seen = connection.execute(query).first() is not None
        return Known(seen, read(store, Tables()).clients.get(prefix, 0))


def leader(folder: Path) -> int:
    """Return the site whose controller computes the mapping."""
    query = sql.select(schema.lease.c.holder).where(schema.lease.c.name == LEASE)
    with _opened(folder) as store, store.reading() as connection:
        holder: str = connection.execute(query).scalar_one()
    return int(holder.partition("@")[0])
