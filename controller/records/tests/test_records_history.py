# SPDX-License-Identifier: Apache-2.0
"""Tests of the linearizability checker itself."""

from __future__ import annotations

import random

from records_history import History, Operation, State, linearizable, porcupines, totally_written


def test_stale_read_is_not_linearizable() -> None:
    history = History()
    for value in ("a", "b"):
        put = history.begin("put", value)
        history.end(put, (1 if value == "a" else 2, value))
    read = history.begin("read")
    history.end(read, (1, "a"))
    assert not linearizable(history.operations)
    assert totally_written(history.operations)


def test_overlapping_operations_may_have_either_order() -> None:
    history = History()
    put, read = history.begin("put", "a"), history.begin("read")
    history.end(read, (0, None))
    late = history.begin("read")
    history.end(late, (1, "a"))
    history.end(put, (1, "a"))
    assert linearizable(history.operations)


def test_two_writes_of_one_version_are_a_lost_update() -> None:
    history = History()
    first, second = history.begin("put", "a"), history.begin("put", "b")
    history.end(first, (1, "a"))
    history.end(second, (1, "b"))
    assert not linearizable(history.operations)
    assert not totally_written(history.operations)


def test_write_with_unknown_outcome_may_take_effect_late_or_never() -> None:
    history = History()
    history.begin("put", "lost")
    put = history.begin("put", "b")
    history.end(put, (1, "b"))
    assert linearizable(history.operations)
    read = history.begin("read")
    history.end(read, (2, "lost"))
    assert linearizable(history.operations)
    again = history.begin("read")
    history.end(again, (1, "b"))
    assert not linearizable(history.operations)


def test_refusal_needs_a_reason() -> None:
    history = History()
    put = history.begin("put", "a")
    history.end(put, (1, "a"))
    refused = history.begin("put", "b", if_version=1)
    history.end(refused, None, "refused")
    assert not linearizable(history.operations)


def test_read_of_unwritten_value_is_detected() -> None:
    history = History()
    read = history.begin("read")
    history.end(read, (1, "ghost"))
    assert not linearizable(history.operations)
    assert not totally_written(history.operations)


def drawn(rng: random.Random) -> list[Operation]:
    """Draw a history of concurrent operations, each of which takes effect at an instant within its duration.

    Some outcomes are unknown, and some histories have one wrong result.
    """
    number = rng.randint(1, 7)
    moments = rng.sample(range(10 * number), 3 * number)
    times = sorted((sorted(moments[3 * i : 3 * i + 3]) for i in range(number)), key=lambda time: time[1])
    state: State = (0, None)
    found = []
    for i, (begin, _, end) in enumerate(times):
        kind = rng.choice(["read", "put", "compare", "delete"])
        present = state[0] if state[1] is not None else 0
        if kind == "read" or (kind == "delete" and not present):
            found.append(Operation("read", None, None, begin, end, (present, state[1])))
            continue
        if_version = rng.choice([present, state[0], 0]) if kind == "compare" else None
        written = None if kind == "delete" else f"v{i}"
        one = Operation("delete" if kind == "delete" else "put", written, if_version, begin)
        done = one.after(state)
        known = rng.random() < 0.8
        if known:
            one.end, one.result, one.kind = end, done, one.kind if done else "refused"
        if done is not None and (known or rng.random() < 0.5):
            state = done
        found.append(one)
    told = [one for one in found if one.result is not None]
    if told and rng.random() < 0.6:
        one = rng.choice(told)
        assert one.result is not None
        one.result = (max(0, one.result[0] + rng.choice([-1, 1])), one.result[1])
    return sorted(found, key=lambda one: one.begin)


def test_porcupine_agrees() -> None:
    histories = [drawn(random.Random(seed)) for seed in range(3000)]
    ours = [linearizable(history) for history in histories]
    assert 500 < sum(ours) < 2500
    theirs = porcupines(histories)
    assert [seed for seed, both in enumerate(zip(ours, theirs, strict=True)) if len(set(both)) > 1] == []
