"""The checker itself: it must find what is wrong."""

from __future__ import annotations

from records_history import History, linearizable, totally_written


def test_a_stale_read_is_no_read_of_one_order() -> None:
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


def test_two_writes_of_one_version_are_an_update_lost() -> None:
    history = History()
    first, second = history.begin("put", "a"), history.begin("put", "b")
    history.end(first, (1, "a"))
    history.end(second, (1, "b"))
    assert not linearizable(history.operations)
    assert not totally_written(history.operations)


def test_what_is_not_known_may_be_done_late_or_never() -> None:
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


def test_a_refusal_needs_a_reason() -> None:
    history = History()
    put = history.begin("put", "a")
    history.end(put, (1, "a"))
    refused = history.begin("put", "b", if_version=1)
    history.end(refused, None, "refused")
    assert not linearizable(history.operations)


def test_reads_that_nobody_wrote_are_found() -> None:
    history = History()
    read = history.begin("read")
    history.end(read, (1, "ghost"))
    assert not linearizable(history.operations)
    assert not totally_written(history.operations)
