"""What the sites' controllers know of the mapping (docs/mapping.md), by a look into the store that they share."""

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


@dataclass(frozen=True)
class Placed:
    """What placement did at its last epoch."""

    epoch: int
    """Its number."""
    move: dict[str, int | None]
    """The epochs of the last move: in which demand first asked for it (`shown`), in which it was `decided`, and the
    last that had ended when first flights went there (`active`); empty before the first."""
    handshakes: int
    """Since the last move."""
    shares: dict[int, float]
    """Of the demand, by region."""
    serving: frozenset[int]
    """Sites that get first flights by now."""
    wanted: frozenset[int]
    """Sites that are to get them."""


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


def placed(folder: Path) -> Placed | None:
    """Where the service is by its demand; None before it was placed."""
    with _opened(folder) as store:
        view, places = store.views().get(ZONE), store.places().get(ZONE, {})
    if view is None or "demand" not in view:
        return None
    shares = {one["region"]: one["share"] for one in view["demand"]}
    serving = frozenset(site for site, place in places.items() if place.stage.serves)
    wanted = frozenset(site for site, place in places.items() if place.stage.wanted)
    return Placed(view["number"], view["move"] or {}, view["since"], shares, serving, wanted)


@dataclass(frozen=True)
class Known:
    """What is known of a client's network."""

    seen: bool
    """A switch has told of it, since it was in no region."""
    region: int
    """0: none."""


def known(folder: Path, client: str) -> Known:
    """Of a client's address."""
    prefix = parse(client).shortened(PREFIX_LENGTH)
    query = sql.select(schema.client_prefix.c.prefix).where(schema.client_prefix.c.prefix == str(prefix))
    with _opened(folder) as store:
        with store.reading() as connection:
            seen = connection.execute(query).first() is not None
        return Known(seen, read(store, Tables()).clients.get(prefix, 0))


def leader(folder: Path) -> int:
    """The site whose controller computes."""
    query = sql.select(schema.lease.c.holder).where(schema.lease.c.name == LEASE)
    with _opened(folder) as store, store.reading() as connection:
        holder: str = connection.execute(query).scalar_one()
    return int(holder.partition("@")[0])
