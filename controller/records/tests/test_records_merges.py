# SPDX-License-Identifier: Apache-2.0
"""Counters, sets and maps: any order of deliveries, repetitions included, gives the state that the definition requires."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontage_records import merges
from frontage_records.clock import HybridClock
from frontage_records.errors import DocumentError
from frontage_records.merges import Delta, Merge, State

SITES = (1, 2, 3)
KEYS = st.sampled_from(["a", "b"])
ELEMENTS = st.lists(st.sampled_from(["x", "y", "z"]), min_size=1, max_size=2, unique=True)
CHANGES = {
    Merge.COUNTER: st.dictionaries(KEYS, st.integers(-5, 5), min_size=1, max_size=2),
    Merge.MAP: st.dictionaries(KEYS, st.none() | st.integers(0, 3), min_size=1, max_size=2),
    Merge.SET: st.dictionaries(
        KEYS, st.builds(lambda how, what: {how: what}, st.sampled_from(["add", "remove"]), ELEMENTS), min_size=1, max_size=2
    ),
}
STEPS = st.sampled_from(["update", "update", "send", "arrive", "again", "follow"])


@dataclass
class Log:
    """The record's log: one order of states, as the Raft group gives."""

    states: list[State] = field(default_factory=lambda: [merges.empty()])

    def append(self, merge: Merge, delta: Delta) -> None:
        self.states.append(merges.absorb(merge, self.states[-1], delta))


@dataclass
class Site:
    """A site that is not the log's: what it reads of the log, which may be old, and its own delta."""

    number: int
    read: int = 0
    generation: int = 0
    delta: Delta | None = None
    sent: list[Delta] = field(default_factory=list)
    """Messages that may still arrive, in any order and more than once."""

    def view(self, merge: Merge, log: Log) -> State:
        state = log.states[self.read]
        return state if self.delta is None else merges.absorb(merge, state, self.delta)

    def update(self, merge: Merge, log: Log, changes: Mapping[str, Any], stamp: int) -> None:
        if self.delta is None:
            self.generation += 1
            self.delta = Delta(self.number, self.generation)
        self.delta = stored(merges.extend(merge, self.view(merge, log), self.delta, changes, stamp))

    def drop_if_read(self, log: Log) -> None:
        """Drop the delta once the site reads a state that contains it."""
        if self.delta is not None and not merges.unseen(log.states[self.read], self.delta):
            self.delta = None


def stored(delta: Delta) -> Delta:
    """Return the delta after a journey as JSON."""
    return Delta(delta.site, delta.generation, delta.number, delta.stamp, json.loads(json.dumps(delta.items)))


def deliver(data: st.DataObject, merge: Merge, log: Log, site: Site) -> None:
    if site.sent:
        log.append(merge, data.draw(st.sampled_from(site.sent)))


@pytest.mark.parametrize("merge", list(Merge))
@given(data=st.data())
def test_all_updates_take_effect_once(merge: Merge, data: st.DataObject) -> None:
    log, sites, clock = Log(), [Site(number) for number in SITES], iter(range(1, 10_000))
    made: list[tuple[dict[str, Any], int, int]] = []
    for _ in range(data.draw(st.integers(1, 40))):
        site = data.draw(st.sampled_from(sites))
        step = data.draw(STEPS)
        if step == "update":
            changes, stamp = data.draw(CHANGES[merge]), next(clock)
            made.append((changes, stamp, site.number))
            before = site.view(merge, log)
            site.update(merge, log, changes, stamp)
            assert_seen(merge, merges.value(merge, before), merges.value(merge, site.view(merge, log)), changes)
        elif step == "send" and site.delta is not None:
            site.sent.append(site.delta)
        elif step in ("arrive", "again"):
            deliver(data, merge, log, site)
        elif step == "follow":
            site.read = len(log.states) - 1
            site.drop_if_read(log)
    for site in data.draw(st.permutations(sites)):
        if site.delta is not None:
            log.append(merge, site.delta)
    for site in sites:
        # Late repetitions change nothing.
        for old in site.sent:
            assert merges.absorb(merge, log.states[-1], old) is log.states[-1]
    if merge is Merge.COUNTER:
        sums: dict[str, int] = {}
        for changes, _, _ in made:
            for key, amount in changes.items():
                sums[key] = sums.get(key, 0) + amount
        assert merges.value(merge, log.states[-1]) == sums
    if merge is Merge.MAP:
        latest: dict[str, Any] = {}
        for changes, _, _ in made:
            # Stamps ascend.
            latest |= changes
        assert merges.value(merge, log.states[-1]) == {key: one for key, one in latest.items() if one is not None}


def assert_seen(merge: Merge, before: dict[str, Any], after: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Assert that a writer sees its own update."""
    for key, change in changes.items():
        if merge is Merge.COUNTER:
            assert after[key] == before.get(key, 0) + change
        elif merge is Merge.SET:
            assert set(after.get(key, ())) == (set(before.get(key, ())) | set(change.get("add", ()))) - set(
                change.get("remove", ())
            )
        elif change is None:
            assert key not in after
        else:
            assert after[key] == change


@pytest.mark.parametrize("merge", list(Merge))
@given(data=st.data())
def test_deltas_of_different_sites_commute(merge: Merge, data: st.DataObject) -> None:
    log, sites, clock = Log(), [Site(number) for number in SITES], iter(range(1, 1000))
    sites[0].update(merge, log, data.draw(CHANGES[merge]), next(clock))
    assert sites[0].delta is not None
    log.append(merge, sites[0].delta)
    for site in sites[1:]:
        site.read = 1
        for _ in range(data.draw(st.integers(1, 5))):
            site.update(merge, log, data.draw(CHANGES[merge]), next(clock))
    one, other = (site.delta for site in sites[1:])
    assert one is not None
    assert other is not None
    base = log.states[-1]
    forth = merges.absorb(merge, merges.absorb(merge, base, one), other)
    back = merges.absorb(merge, merges.absorb(merge, base, other), one)
    assert merges.encode(forth) == merges.encode(back)


def test_addition_wins_over_concurrent_removal() -> None:
    log, one, two = Log(), Site(1), Site(2)
    one.update(Merge.SET, log, {"a": {"add": ["x", "y"]}}, 1)
    assert one.delta is not None
    log.append(Merge.SET, one.delta)
    two.read = 1
    two.update(Merge.SET, log, {"a": {"remove": ["x", "y"]}}, 2)
    one.update(Merge.SET, log, {"a": {"add": ["x"]}}, 3)
    assert two.delta is not None
    for delta in (two.delta, one.delta, two.delta):
        log.append(Merge.SET, delta)
    assert merges.value(Merge.SET, log.states[-1]) == {"a": ["x"]}


@pytest.mark.parametrize("merge", list(Merge))
@given(data=st.data())
def test_state_with_a_document_has_that_document(merge: Merge, data: st.DataObject) -> None:
    state = merges.extend(merge, merges.empty(), Delta(1, 1), data.draw(CHANGES[merge]), 1)
    document = merges.value(merge, merges.absorb(merge, merges.empty(), state))
    assert merges.value(merge, merges.of_value(merge, document)) == document


@pytest.mark.parametrize(
    ("merge", "changes", "message"),
    [
        (Merge.COUNTER, {}, "at least one key"),
        (Merge.COUNTER, {"a": True}, "must be an integer"),
        (Merge.COUNTER, {"a": 1.5}, "must be an integer"),
        (Merge.COUNTER, {"a": 1 << 53}, "must be an integer"),
        (Merge.SET, {"a": ["x"]}, "must contain `add` or `remove`"),
        (Merge.SET, {"a": {"append": ["x"]}}, "must contain `add` or `remove`"),
        (Merge.SET, {"a": {"add": [1]}}, "must be lists of strings"),
        (Merge.SET, {"a": {"add": ["x"], "remove": ["x"]}}, "both added and removed"),
        (Merge.MAP, [], "must be a JSON object"),
    ],
)
def test_invalid_changes_are_rejected(merge: Merge, changes: object, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        merges.check_changes(merge, changes)


def test_hybrid_clock_follows_stamps_and_never_repeats() -> None:
    physical = iter([100, 100, 90, 200])
    clock = HybridClock(lambda: next(physical))
    assert [clock.tick(), clock.tick()] == [100, 101]
    clock.observe(150)
    assert [clock.tick(), clock.tick()] == [151, 200]
