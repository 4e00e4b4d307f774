# SPDX-License-Identifier: Apache-2.0
"""The store of the mapping in SQLite, and in PostgreSQL if a server is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sql

from frontage.mapping.compute.engine import Engine
from frontage.mapping.compute.orders import Margin
from frontage.mapping.compute.prefixes import parse
from frontage.mapping.compute.values import Measurements, Sample
from frontage.mapping.demand.waiting import HandshakeWait, handshake_waits
from frontage.mapping.errors import LeaseLostError, StoreError
from frontage.mapping.services import Replica, Service
from frontage.mapping.store import schema
from frontage.mapping.store.latency import EXPIRED_RETENTION
from frontage.mapping.store.store import Store
from frontage.mapping.store.tables import Tables, difference, publish, read

A, B = parse("198.51.100.0/24"), parse("2001:db8:c1::/48")
WINDOW = 100.0


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    """Start a server without network, and return its URL."""
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not binaries or shutil.which("runuser") is None or os.geteuid() != 0:
        pytest.skip("no PostgreSQL server (Debian: postgresql), or not root: its server runs as another user")
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        shutil.chown(folder, "postgres")
        data = f"{folder}/data"

        def run(*words: str) -> None:
            subprocess.run(["runuser", "-u", "postgres", "--", *words], check=True, capture_output=True, cwd=folder)

        run(str(binaries[-1] / "initdb"), "-D", data, "-A", "trust", "-U", "frontage", "--no-sync")
        options = f"-k {folder} -c listen_addresses= -c fsync=off"
        run(str(binaries[-1] / "pg_ctl"), "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start")
        try:
            yield f"postgresql+psycopg://frontage@/postgres?host={folder}"
        finally:
            run(str(binaries[-1] / "pg_ctl"), "-D", data, "-m", "immediate", "stop")


Opener = Callable[[], Store]


@pytest.fixture(params=["sqlite", "postgresql"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Return a function that opens the same, initially empty, store each time."""
    url = f"sqlite:///{tmp_path}/mapping.db" if request.param == "sqlite" else request.getfixturevalue("postgresql")
    opened: list[Store] = []

    def open_() -> Store:
        opened.append(Store(url, window=WINDOW))
        return opened[-1]

    yield open_
    for store in opened[1:]:
        store.close()
    if opened:
        schema.metadata.drop_all(opened[0].engine)
        opened[0].close()


def test_minimum_rtt_of_two_windows_counts(opener: Opener) -> None:
    store = opener()
    for now, rtt, expected in [
        (1000.0, 9.0, 9.0),
        (1010.0, 7.0, 7.0),
        (1020.0, 8.0, 7.0),
        (1100.0, 9.0, 7.0),  # the window before still counts
        (1200.0, 9.5, 9.0),  # it is over
        (1900.0, 30.0, 30.0),  # and nothing of long ago counts
    ]:
        store.add_samples([Sample(A, 1, rtt)], now)
        assert store.measurements().cells == {(A, 1): expected}
    # Late and repeated samples make no difference.
    store.add_samples([Sample(A, 1, 2.0)], 1850.0)
    store.add_samples([Sample(A, 1, 31.0), Sample(A, 1, 30.0)], 1910.0)
    assert store.measurements().cells[A, 1] == 2.0
    # The minimum of active and passive samples counts.
    store.add_samples([Sample(A, 1, 1.0, source="active"), Sample(B, 2, 5.0)], 1910.0)
    assert store.measurements().cells == {(A, 1): 1.0, (B, 2): 5.0}


def test_reader_gets_only_changes(opener: Opener) -> None:
    store, other = opener(), opener()
    store.add_samples([Sample(A, 1, 9.0), Sample(A, 2, 8.0)], 1000.0)
    store.deploy([("films.example", 1), ("films.example", 2), ("books.example", 1)])
    seen = other.version()
    assert (other.measurements(seen).cells, other.deployments(seen)) == ({}, {})
    store.add_samples([Sample(A, 2, 7.0)], 1000.0)
    store.deploy([("films.example", 2)], present=False)
    assert other.measurements(seen).cells == {(A, 2): 7.0}
    assert other.deployments(seen) == {"films.example": {1}}
    assert other.deployments() == {"films.example": {1}, "books.example": {1}}


def test_expiry_of_old_rtts_reaches_readers(opener: Opener) -> None:
    store, other = opener(), opener()
    store.add_samples([Sample(A, 1, 9.0), Sample(A, 2, 8.0, source="active")], 1000.0)
    store.add_samples([Sample(A, 2, 9.0), Sample(B, 1, 5.0)], 2000.0)
    seen = other.version()
    store.expire(2500.0, 1000.0)
    left = other.measurements(seen).cells
    assert left.keys() == {(A, 1), (A, 2)}
    assert np.isnan(left[A, 1])
    assert left[A, 2] == 9.0
    # A first-time reader does not see expired rows.
    assert other.measurements().cells == {(A, 2): 9.0, (B, 1): 5.0}
    assert [(site, source) for _, site, source, *_ in other.rtts([A])] == [(2, "passive")]
    assert other.unmeasured(1, 0.0, "", 10) == [str(A)]
    # The second call has nothing to write.
    seen = other.version()
    store.expire(2500.0, 1000.0)
    assert other.version() == seen
    # A new sample after expiry counts alone.
    store.add_samples([Sample(A, 1, 20.0)], 2510.0)
    assert other.measurements(seen).cells == {(A, 1): 20.0}
    store.add_samples([Sample(A, 1, 30.0)], 2610.0)
    assert other.measurements().cells[A, 1] == 20.0


def test_expired_rtts_are_deleted_in_the_end(opener: Opener) -> None:
    store = opener()
    store.add_samples([Sample(A, 1, 9.0)], 1000.0)
    for now, rows in ((5000.0, 1), (5000.0 + EXPIRED_RETENTION - WINDOW, 1), (5000.0 + EXPIRED_RETENTION + WINDOW, 0)):
        store.expire(now, 1000.0)
        with store.reading() as connection:
            assert len(connection.execute(sql.select(schema.latency_measurement)).all()) == rows


def test_handshake_waits_add_up_until_taken(opener: Opener) -> None:
    store, other = opener(), opener()
    store.add_samples([Sample(A, 1, 9.0), Sample(A, 2, 8.0), Sample(B, 1, 7.0, source="active")], 1000.0)
    assert other.known_rtts([A, A]) == {(A, 1): 9.0, (A, 2): 8.0}
    assert other.known_rtts([B, parse("192.0.2.0/24")]) == {(B, 1): 7.0}
    # Networks without a known RTT and probes do not count.
    heard = [Sample(A, 1, 11.0, 2), Sample(A, 3, 50.0), Sample(B, 1, 6.0), Sample(B, 1, 90.0, source="active")]
    for one in (store, other):
        one.add_waits(handshake_waits(heard, one.known_rtts(sample.prefix for sample in heard)))
    assert sorted(store.take_waits(), key=lambda one: one.network) == [
        HandshakeWait(str(A), 1, 8.0, 4),
        HandshakeWait(str(B), 1, 0.0, 2),
    ]
    seen = other.version()
    other.add_waits([])
    assert (other.version(), other.take_waits()) == (seen, [])


def replica(site: int, sid: int, name: str, *, accepting: bool = True) -> Replica:
    return Replica(site, sid, name, f"2001:db8::{sid}", 0.5, 1.0, accepting)


def test_site_without_accepting_replicas_is_left_out(opener: Opener) -> None:
    store = opener()
    store.deploy([("films.example", 1), ("films.example", 2), ("films.example", 3)])
    store.set_replicas(1, [replica(1, 11, "films.example"), replica(1, 12, "films.example", accepting=False)], 1000.0)
    assert store.deployments() == {"films.example": {1, 2, 3}}
    store.set_replicas(
        1, [replica(1, 11, "films.example", accepting=False), replica(1, 12, "films.example", accepting=False)], 1001.0
    )
    assert store.deployments() == {"films.example": {2, 3}}
    assert [one.accepting for one in store.replicas()] == [False, False]
    store.set_replicas(1, [replica(1, 11, "films.example"), replica(1, 13, "news.example")], 1002.0)
    assert store.deployments() == {"films.example": {1, 2, 3}, "news.example": {1}}
    store.set_replicas(1, [], 1003.0)
    # Site 2 has never reported, so the operator's declaration holds.
    assert store.deployments() == {"films.example": {2, 3}, "news.example": set()}
    seen = store.version()
    store.set_replicas(1, [], 1004.0)
    assert store.deployments(seen) == {}


def test_services_keep_their_numbers(opener: Opener) -> None:
    store = opener()
    store.deploy([("a", 1), ("b", 1)])
    assert {name: one.number for name, one in store.services().items()} == {"a": 1, "b": 2}
    store.register([Service("c", 1, 2, "load", ("h3", "h3-29")), Service("b", 0, 3)])
    found = store.services()
    assert found["c"] == Service("c", 1, 2, "load", ("h3", "h3-29"))
    assert (found["b"].number, found["b"].redundancy) == (2, 3)
    assert sorted(one.number for one in found.values()) == [1, 2, found["a"].number]


def test_prefixes_to_probe_are_paged(opener: Opener) -> None:
    store = opener()
    prefixes = [parse(f"10.{i}.0.0/24") for i in range(5)]
    store.add_samples([Sample(prefix, 1, 5.0) for prefix in prefixes], 1000.0)
    store.add_samples([Sample(prefixes[2], 2, 5.0)], 1000.0)
    assert store.unmeasured(2, 900.0, "", 2) == ["10.0.0.0/24", "10.1.0.0/24"]
    assert store.unmeasured(2, 900.0, "10.1.0.0/24", 9) == ["10.3.0.0/24", "10.4.0.0/24"]
    assert store.unmeasured(1, 900.0, "", 9) == []
    assert store.unmeasured(2, 1000.0, "", 9) == []


def test_only_one_controller_holds_the_lease(opener: Opener) -> None:
    one, two = opener(), opener()
    first = one.acquire_lease("one", 1000.0, 10.0)
    assert first is not None
    assert two.acquire_lease("two", 1005.0, 10.0) is None
    assert one.acquire_lease("one", 1009.0, 10.0) is not None
    assert two.acquire_lease("two", 1018.0, 10.0) is None
    # `one` is silent and `two` takes over; a write of `one` under its old lease is refused completely.
    assert two.acquire_lease("two", 1020.0, 10.0) is not None
    engine = Engine([1, 2], Margin(0.0, 0.0))
    changes = engine.update(Measurements.of({(A, 1): 5.0}), {"films.example": ([1, 2], 1)})
    one.deploy([("films.example", 1), ("films.example", 2)])
    with pytest.raises(LeaseLostError):
        publish(one, "one", first, engine, changes, {}, Tables())
    assert read(two, Tables()).clients == {}
    assert one.acquire_lease("one", 1021.0, 10.0) is None
    # A holder at a site that is gone loses the lease; other holders keep theirs.
    assert two.acquire_lease("12@two", 1031.0, 10.0) is not None
    assert one.acquire_lease("1@one", 1032.0, 10.0, {2, 1}) is None
    assert one.acquire_lease("1@one", 1032.0, 10.0, {12}) is not None


def test_published_tables_are_read_back(opener: Opener) -> None:
    store, other = opener(), opener()
    store.deploy([("a", 1), ("a", 2), ("b", 2)])
    lease = store.acquire_lease("one", 1000.0, 10.0)
    assert lease is not None
    engine = Engine([1, 2, 3], Margin(0.0, 0.0))
    changes = engine.update(
        Measurements.of({(A, 1): 5.0, (A, 2): 6.0, (B, 2): 1.0, (B, 1): 3.0}), {"a": ([1, 2], 2), "b": ([2], 1)}
    )
    publish(store, "one", lease, engine, changes, {1: (1, 2), 3: (2, 1)}, Tables())
    first = read(other, Tables())
    assert first.clients == engine.clients
    assert first.default(1, first.services["a"]) == (1, 2)
    assert first.default(3, first.services["a"]) == (2, 1)
    assert first.default(2, first.services["a"]) == (2, 1)
    # Region 0 is the site's default; equal regions need no entry.
    number, region = first.services["a"], first.clients[A]
    assert first.entries(1, number)[[0, region]].tolist() == [[1, 2], [0, 0]]
    assert first.entries(2, number)[[0, region]].tolist() == [[2, 1], [1, 2]]
    assert read(other, first) is first
    # Every kind of change gives only its difference.
    changes = engine.update(Measurements.of({(A, 1): 9.0}), {"b": None, "c": ([1, 3], 1)})
    store.deploy([("c", 1), ("c", 3)])
    publish(store, "one", lease, engine, changes, {1: (1, 2), 3: (2, 1)}, first)
    second = read(other, first)
    whole = read(store, Tables())
    assert second.content == whole.content > first.content
    assert (second.clients, second.services, second.details) == (whole.clients, whole.services, whole.details)
    assert second.services.keys() == {"a", "c"}
    for site in (1, 2, 3):
        step = difference(first, second, site)
        assert step.services.keys() == {"b", "c"}
        for number in second.deployments:
            np.testing.assert_array_equal(second.entries(site, number), whole.entries(site, number))


def test_store_with_other_schema_is_rejected(opener: Opener) -> None:
    store = opener()
    with store.engine.begin() as connection:
        connection.execute(sql.update(schema.counter).where(schema.counter.c.name == "schema").values(value=99))
    with pytest.raises(StoreError, match=r"schema 99, but this program has schema 1: .* import into a new store"):
        opener()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://host/db", "give sqlite:///FILE or postgresql"),
        ("nonsense", "give sqlite:///FILE or postgresql"),
        ("sqlite:////nowhere/at/all.db", "unable to open database file: .*make the folder writable"),
        ("postgresql+psycopg://frontage@/db?host=/nowhere", "start the server"),
    ],
)
def test_unavailable_store_is_reported_with_reason(url: str, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        Store(url)
