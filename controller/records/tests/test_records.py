# SPDX-License-Identifier: Apache-2.0
"""The guarantees of a record store, for every engine."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence

import pytest

from frontage_records.document import encode, parse
from frontage_records.errors import (
    ConsistencyError,
    DocumentError,
    GuidError,
    MergeError,
    NoOrderError,
    NotFoundError,
    RecordError,
    SiteError,
    SizeError,
    StampError,
    VersionError,
)
from frontage_records.record import REPLACED, Consistency, Record
from frontage_records.store import Store
from records_engines import BOUNDS, NOW, Engine, RoutedEngine, cluster, engine, store
from records_history import History, linearizable, totally_written

__all__ = ["cluster", "engine", "store"]


def skip_client(engine: Engine) -> None:
    if isinstance(engine, RoutedEngine):
        pytest.skip("a client stamps all its writes, by its own clock")


ORDERED = [Consistency.TOTAL_WRITES, Consistency.TOTAL]
ALL = list(REPLACED)


@pytest.mark.parametrize("consistency", ALL)
async def test_get_returns_what_was_put(store: Store, consistency: Consistency) -> None:
    value = {"address": "2001:db8::7", "deep": {"list": [1, 2.5, None, True, "ä"]}}
    written = await store.put("films.example", value, consistency=consistency, stamp=NOW)
    assert written.applied
    found = await store.get("films.example")
    assert found == written.record
    assert (found.value, found.consistency, found.stamp) == (value, consistency, NOW)


async def test_records_are_independent(store: Store) -> None:
    await store.put("a.b", {"n": 1})
    await store.put("a", {"n": 2})
    await store.put("A", {"n": 3})
    assert [(await store.get(guid)).value for guid in ("a.b", "a", "A")] == [{"n": 1}, {"n": 2}, {"n": 3}]


async def test_consistency_defaults_to_eventual_and_cannot_change(store: Store) -> None:
    assert (await store.put("one", {})).record.consistency is Consistency.EVENTUAL
    await store.put("two", {}, consistency=Consistency.TOTAL)
    with pytest.raises(ConsistencyError, match="the consistency is total and cannot change"):
        await store.put("two", {}, consistency=Consistency.EVENTUAL)
    assert (await store.put("two", {})).record.consistency is Consistency.TOTAL


# Total orders


@pytest.mark.parametrize("consistency", ORDERED)
async def test_versions_count_writes(store: Store, consistency: Consistency) -> None:
    for version in (1, 2, 3):
        assert (await store.put("guid", {"n": version}, consistency=consistency)).record.version == version
    assert (await store.delete("guid")).record.version == 4
    with pytest.raises(NotFoundError):
        await store.get("guid")
    with pytest.raises(NotFoundError):
        await store.delete("guid")
    # Versions are never reused: compare-and-put would mistake another document for the one read.
    assert (await store.put("guid", {"n": 5})).record.version == 5


@pytest.mark.parametrize("consistency", ORDERED)
async def test_compare_and_put(store: Store, consistency: Consistency) -> None:
    await store.put("guid", {"n": 1}, consistency=consistency, if_version=0)
    with pytest.raises(VersionError, match="has version 1, expected version 0"):
        await store.put("guid", {"n": 2}, if_version=0)
    await store.put("guid", {"n": 2}, if_version=1)
    with pytest.raises(VersionError):
        await store.put("guid", {"n": 3}, if_version=1)
    with pytest.raises(VersionError):
        await store.delete("guid", if_version=1)
    await store.delete("guid", if_version=2)
    with pytest.raises(VersionError, match="does not exist, expected version"):
        await store.put("guid", {"n": 4}, if_version=3)
    assert (await store.put("guid", {"n": 4}, if_version=0)).record.version == 4


@pytest.mark.parametrize("consistency", ORDERED)
async def test_stamps_do_not_order_total_records(store: Store, consistency: Consistency) -> None:
    await store.put("guid", {"n": 1}, consistency=consistency, stamp=NOW)
    await store.put("guid", {"n": 2}, stamp=7)
    assert (await store.get("guid")).value == {"n": 2}


# Last writer wins


async def test_latest_stamp_wins_in_any_order(store: Store) -> None:
    await store.put("guid", {"n": 2}, stamp=NOW + 2)
    late = await store.put("guid", {"n": 1}, stamp=NOW + 1)
    assert not late.applied
    assert late.record.value == {"n": 2}
    assert (await store.put("guid", {"n": 3}, stamp=NOW + 3)).applied
    assert (await store.get("guid")).value == {"n": 3}


async def test_equal_stamps_have_the_same_winner_in_any_order(store: Store) -> None:
    for guid, values in (("up", ("a", "b")), ("down", ("b", "a"))):
        for value in values:
            await store.put(guid, {"v": value}, stamp=NOW)
        assert (await store.get(guid)).value == {"v": "b"}
    again = await store.put("up", {"v": "b"}, stamp=NOW)
    assert again.applied, "the same write again is done"


async def test_late_write_does_not_restore_deleted_record(store: Store) -> None:
    await store.put("guid", {"n": 1}, stamp=NOW)
    await store.delete("guid", stamp=NOW + 10)
    assert not (await store.put("guid", {"n": 2}, stamp=NOW + 9)).applied
    assert not (await store.put("guid", {"n": 2}, stamp=NOW + 10)).applied, "of equal stamps, the deletion is the later"
    with pytest.raises(NotFoundError):
        await store.get("guid")
    assert (await store.put("guid", {"n": 3}, stamp=NOW + 11)).applied


async def test_last_arrival_wins_without_stamps(engine: Engine, store: Store) -> None:
    skip_client(engine)
    await store.put("guid", {"n": 1}, stamp=NOW + BOUNDS.max_ahead)
    for n in (2, 3):
        assert (await store.put("guid", {"n": n})).applied
    assert (await store.get("guid")).value == {"n": 3}


async def test_compare_and_put_of_eventual_record_is_rejected(store: Store) -> None:
    await store.put("guid", {})
    with pytest.raises(NoOrderError):
        await store.put("guid", {}, if_version=1)
    with pytest.raises(NoOrderError):
        await store.put("new", {}, if_version=0)


@pytest.mark.parametrize("consistency", ALL)
async def test_invalid_stamps_are_rejected_and_change_nothing(store: Store, consistency: Consistency) -> None:
    await store.put("guid", {"n": 1}, consistency=consistency, stamp=NOW + BOUNDS.max_ahead)
    with pytest.raises(StampError, match=r"5.0 s ahead of this server's clock"):
        await store.put("guid", {"n": 2}, stamp=NOW + BOUNDS.max_ahead + 1)
    with pytest.raises(StampError, match="before 1970"):
        await store.put("guid", {"n": 2}, stamp=-1)
    with pytest.raises(StampError):
        await store.delete("guid", stamp=NOW * 1000)
    assert (await store.get("guid")).value == {"n": 1}


@pytest.mark.parametrize("consistency", ALL)
async def test_stamp_a_year_ahead_is_rejected(store: Store, consistency: Consistency) -> None:
    year = 365 * 86_400 * 10**6
    with pytest.raises(StampError, match=r"31536000\.0 s ahead of this server's clock, but at most 5 s is accepted"):
        await store.put("guid", {"n": 1}, consistency=consistency, stamp=NOW + year)
    with pytest.raises(NotFoundError):
        await store.get("guid")
    assert (await store.put("guid", {"n": 2}, consistency=consistency, stamp=NOW)).applied
    with pytest.raises(StampError):
        await store.put("guid", {"n": 3}, stamp=NOW + year)
    assert (await store.put("guid", {"n": 4}, stamp=NOW + 1)).applied
    assert (await store.get("guid")).value == {"n": 4}


async def test_writes_without_stamps_survive_server_clock_set_back(engine: Engine, store: Store) -> None:
    skip_client(engine)
    await store.put("guid", {"n": 1})
    engine.clock.now -= 3600 * 10**6
    assert (await store.put("guid", {"n": 2})).applied
    assert (await store.get("guid")).value == {"n": 2}


# Rejected input


@pytest.mark.parametrize("guid", ["", "a b", "a/b", "x" * 129, "*", ">", "ä", "..", ".", "a\n"])
async def test_invalid_guids_are_rejected(store: Store, guid: str) -> None:
    for operation in (store.get(guid), store.put(guid, {}), store.delete(guid), store.sites(guid), store.place(guid, [1])):
        with pytest.raises(GuidError):
            await operation
    with pytest.raises(GuidError):
        async with store.subscribe(guid):
            pass


async def test_size_limit_counts_encoded_bytes(store: Store) -> None:
    room = BOUNDS.max_bytes - len('{"v":""}')
    await store.put("guid", {"v": "ä" * (room // 2)})
    with pytest.raises(SizeError, match="at most 1000 are allowed"):
        await store.put("guid", {"v": "ä" * (room // 2 + 1)})


@pytest.mark.parametrize("value", [[], "text", None, {"v": float("nan")}, {"v": float("inf")}, {"v": "\ud800"}, {"v": {1, 2}}])
def test_invalid_documents_are_rejected(value: object) -> None:
    with pytest.raises(DocumentError):
        encode(value, 1000)  # type: ignore[arg-type]


DEEP = b'{"v":' + b"[" * 200_000 + b"]" * 200_000 + b"}"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'"a"', b'{"a":NaN}', b'{"a":1,"a":2}', b"\xff\xfe", b'{"a":' + b"9" * 5000 + b"}", DEEP]
)
def test_invalid_bodies_are_rejected(body: bytes) -> None:
    with pytest.raises(DocumentError):
        encode(parse(body, 1 << 20), 1 << 20)


def test_equal_documents_have_equal_encodings() -> None:
    assert encode(parse(b'{"b": [1, 2],\n "a": "\\u00e4"}', 100), 100) == encode({"a": "ä", "b": [1, 2]}, 100)


async def test_sites_and_moves(store: Store) -> None:
    await store.put("guid", {})
    sites = await store.sites("guid")
    assert 1 in sites
    await store.place("guid", sites)
    with pytest.raises(SiteError):
        await store.place("guid", [77])
    for missing in (store.sites("missing"), store.place("missing", [1])):
        with pytest.raises(NotFoundError):
            await missing


# Subscriptions


async def test_subscriber_gets_present_and_later_states(store: Store) -> None:
    await store.put("guid", {"n": 1}, consistency=Consistency.TOTAL)
    async with store.subscribe("guid") as watch:
        assert _values([await watch.next()]) == [{"n": 1}]
        await store.put("other", {})
        await store.put("guid", {"n": 2})
        assert _values([await watch.next()]) == [{"n": 2}]
        await store.delete("guid")
        assert _values([await watch.next()]) == [None]
    assert store.subscriptions == 0


async def test_subscription_before_creation(store: Store) -> None:
    async with store.subscribe("guid") as watch:
        await store.put("guid", {"n": 1}, consistency=Consistency.TOTAL)
        assert _values([await watch.next()]) == [{"n": 1}]


async def test_slow_subscriber_skips_to_latest_and_never_goes_back(store: Store) -> None:
    async with store.subscribe("guid") as watch:
        for n in range(1, 101):
            await store.put("guid", {"n": n}, consistency=Consistency.TOTAL)
        versions: list[int] = []
        while not versions or versions[-1] < 100:
            record = await watch.next()
            assert record is not None
            versions.append(record.version)
    assert versions == sorted(set(versions))


async def test_subscriptions_end_with_the_store(engine: Engine) -> None:
    store = await engine.open()
    await store.put("guid", {"n": 1})
    async with store.subscribe("guid") as watch:
        assert _values([await watch.next()]) == [{"n": 1}]
        await store.close()
        assert await watch.next() is None


def _values(records: Sequence[Record | None]) -> list[object]:
    return [record.value for record in records if record is not None]


# Concurrent writers and readers


@pytest.mark.parametrize("consistency", ORDERED)
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_concurrent_histories_are_consistent(store: Store, consistency: Consistency, seed: int) -> None:
    history = History()
    await asyncio.gather(*(worker(store, history, consistency, seed * 100 + i, 12) for i in range(6)))
    assert (linearizable if consistency is Consistency.TOTAL else totally_written)(history.operations), f"seed {seed}"


async def worker(store: Store, history: History, consistency: Consistency, seed: int, operations: int, guid: str = "guid") -> None:
    """Run random reads, puts, compare-and-puts and deletions in sequence."""
    rng = random.Random(seed)
    known = 0
    for i in range(operations):
        kind = rng.choice(["read", "read", "put", "compare", "compare", "delete"])
        if kind == "read":
            operation = history.begin("read")
            try:
                record = await store.get(guid)
            except NotFoundError:
                known = 0
                history.end(operation, (0, None))
            else:
                known = record.version
                history.end(operation, (known, json.dumps(record.value)))
            continue
        if_version = known if kind == "compare" else None
        value = {"by": seed, "n": i}
        written = None if kind == "delete" else json.dumps(value)
        operation = history.begin("delete" if kind == "delete" else "put", written, if_version)
        try:
            if kind == "delete":
                result = await store.delete(guid)
            else:
                result = await store.put(guid, value, consistency=consistency, if_version=if_version)
        except VersionError:
            history.end(operation, None, "refused")
        except NotFoundError:
            # It has read that the record does not exist.
            history.end(operation, (0, None), "read")
        else:
            history.end(operation, (result.record.version, written))


@pytest.mark.parametrize("seed", [1, 2])
async def test_eventual_writers_converge(store: Store, seed: int) -> None:
    rng = random.Random(seed)
    writes = [(NOW + rng.randrange(10), {"by": rng.randrange(5)}) for _ in range(60)]
    results = await asyncio.gather(*(store.put("guid", value, stamp=stamp) for stamp, value in writes))
    stamp, document = max((stamp, encode(value, 1000)) for stamp, value in writes)
    found = await store.get("guid")
    assert (found.stamp, found.document) == (stamp, document), f"seed {seed}"
    assert any(result.applied and result.record == found for result in results)


async def test_concurrent_increments_are_not_lost(store: Store) -> None:
    async def increment() -> None:
        while True:
            record = await store.get("counter")
            assert record.value is not None
            try:
                await store.put("counter", {"n": record.value["n"] + 1}, if_version=record.version)
            except VersionError:
                continue
            return

    await store.put("counter", {"n": 0}, consistency=Consistency.TOTAL)
    await asyncio.gather(*(increment() for _ in range(20)))
    assert (await store.get("counter")).value == {"n": 20}


MERGED = {
    Consistency.COUNTER: ([{"a": 2}, {"a": -5, "b": 1}], {"a": -3, "b": 1}),
    Consistency.SET: ([{"a": {"add": ["x", "y"]}}, {"a": {"remove": ["x"]}, "b": {"add": ["z"]}}], {"a": ["y"], "b": ["z"]}),
    Consistency.MAP: ([{"a": 1, "b": {"c": 2}}, {"a": None, "d": [3]}], {"b": {"c": 2}, "d": [3]}),
}


@pytest.mark.parametrize("consistency", MERGED)
async def test_updates_are_merged(store: Store, consistency: Consistency) -> None:
    updates, document = MERGED[consistency]
    with pytest.raises(NotFoundError):
        await store.update("guid", updates[0])
    for number, changes in enumerate(updates):
        written = await store.update("guid", changes, consistency=consistency)
        assert (written.applied, written.record.version) == (True, number + 1)
    assert written.record.value == (await store.get("guid")).value == document
    with pytest.raises(MergeError, match="cannot be replaced: use PATCH"):
        await store.put("guid", {})
    with pytest.raises(DocumentError):
        await store.update("guid", {})
    await store.delete("guid")
    with pytest.raises(NotFoundError):
        await store.update("guid", updates[0])
    assert (await store.update("guid", updates[0], consistency=consistency)).record.version == len(updates) + 2


async def test_concurrent_updates_of_a_counter_are_not_lost(store: Store) -> None:
    await store.update("guid", {"n": 0}, consistency=Consistency.COUNTER)
    await asyncio.gather(*(store.update("guid", {"n": 1}) for _ in range(20)))
    assert (await store.get("guid")).value == {"n": 20}


async def test_records_survive_restart(engine: Engine) -> None:
    store = await engine.open()
    before = [(await store.put(f"guid-{i}", {"i": i}, consistency=one)).record for i, one in enumerate(ALL)]
    await store.delete("guid-2")
    await store.close()
    with pytest.raises(RecordError):
        await store.get("guid-0")
    store = await engine.open()
    try:
        assert [await store.get(f"guid-{i}") for i in (0, 1)] == before[:2]
        assert (await store.put("guid-2", {})).record.version == 3, "of a deleted one the version is known"
    finally:
        await store.close()
