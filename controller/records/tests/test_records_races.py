# SPDX-License-Identifier: Apache-2.0
"""Many servers that write one record concurrently, and writes whose answers are lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import nats.errors
import pytest
from nats.aio.client import Client, ServerVersion
from nats.js import JetStreamContext, api
from nats.js.errors import BadRequestError

from frontage.jetstream import MIN_SERVER_VERSION
from frontage_records.errors import EngineError
from frontage_records.jetstream import log
from frontage_records.jetstream.connection import InFlightError, OvertakenError
from frontage_records.jetstream.engine import JetStream
from frontage_records.record import Consistency
from nats_cluster import Cluster
from records_engines import BOUNDS, Clock, cluster
from records_history import History, linearizable

__all__ = ["cluster"]

MANY = 2 * log.HISTORY + 8
ROUNDS = 3


async def servers(cluster: Cluster, count: int) -> list[JetStream]:
    await cluster.ready()
    return [await JetStream.open(cluster.urls, 1, [1], bounds=BOUNDS, clock=Clock()) for _ in range(count)]


async def close(cluster: Cluster, opened: list[JetStream]) -> None:
    for server in opened:
        await server.close()
    await cluster.clear()


@pytest.mark.parametrize("consistency", [Consistency.TOTAL_WRITES, Consistency.TOTAL])
async def test_more_writers_than_stream_history_lose_no_write(cluster: Cluster, consistency: Consistency) -> None:
    opened = await servers(cluster, MANY)
    history = History()
    begun = history.begin("put", "0")
    history.end(begun, ((await opened[0].put("guid", {"v": "0"}, consistency=consistency)).record.version, "0"))

    async def write(server: JetStream, by: int) -> None:
        for n in range(ROUNDS):
            value = f"{by}.{n}"
            operation = history.begin("put", value)
            history.end(operation, ((await server.put("guid", {"v": value})).record.version, value))

    await asyncio.gather(*(write(server, by) for by, server in enumerate(opened)))
    versions = sorted(one.result[0] for one in history.operations if one.result is not None)
    assert versions == list(range(1, 2 + MANY * ROUNDS))
    last = history.begin("read")
    record = await opened[0].get("guid")
    assert record.value is not None
    history.end(last, (record.version, record.value["v"]))
    assert linearizable(history.operations)
    await close(cluster, opened)


async def test_stream_accepts_one_of_concurrent_messages(cluster: Cluster) -> None:
    """The module `log` relies on this; nats-server 2.9.10 accepts all of the messages."""
    opened = await servers(cluster, 1)
    await opened[0].put("guid", {"n": 1}, consistency=Consistency.TOTAL)
    place = await opened[0].locator.find("guid")
    assert place is not None
    subject = place.group.subject("guid")
    publish = opened[0].connection.publish
    came = await asyncio.gather(
        *(publish(subject, place.tail.entry.encode(), place.tail.last, f"write {n}") for n in range(MANY)),
        return_exceptions=True,
    )
    taken = [one for one in came if isinstance(one, int)]
    refused = [one for one in came if isinstance(one, OvertakenError | InFlightError)]
    assert (len(taken), len(refused)) == (1, MANY - 1)
    await close(cluster, opened)


Publish = Callable[..., Any]


def lose(monkeypatch: pytest.MonkeyPatch, attempt: Callable[[int, Publish], Any]) -> None:
    """Replace each publication by ``attempt``, which gets its number from 1 and the original call."""
    publish, number = JetStreamContext.publish, 0

    async def instead(self: JetStreamContext, *args: Any, **options: Any) -> api.PubAck:
        nonlocal number
        number += 1
        found: api.PubAck = await attempt(number, lambda: publish(self, *args, **options))
        return found

    monkeypatch.setattr(JetStreamContext, "publish", instead)


LOST = nats.errors.TimeoutError()
OLD = [
    BadRequestError(code=400, err_code=10071, description="wrong last sequence: 0"),
    BadRequestError(code=400, err_code=10164, description="wrong last sequence"),
]
"""Answers of a former leader that arrive before the new leader's: no later message, or one in flight."""


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("heard", [LOST, *OLD], ids=["no answer", "wrong sequence", "in flight"])
async def test_write_without_answer_is_done_once(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, heard: Exception, arrives: bool
) -> None:
    opened = await servers(cluster, 1)
    await opened[0].put("guid", {"n": 1}, consistency=Consistency.TOTAL)

    async def attempt(number: int, publish: Publish) -> Any:
        if number > 1:
            return await publish()
        if arrives:
            await publish()
        raise heard

    with monkeypatch.context() as patch:
        lose(patch, attempt)
        # A second write would be refused.
        assert (await opened[0].put("guid", {"n": 2}, if_version=1)).record.version == 2
    found = await opened[0].get("guid")
    assert (found.version, found.value) == (2, {"n": 2})
    await close(cluster, opened)


async def test_stored_write_is_done_once_even_if_newer_writes_displace_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A former leader answers that a message is in flight, while the new leader stores this one and many others."""
    opened = await servers(cluster, 2)
    await opened[0].put("guid", {"n": 1}, consistency=Consistency.TOTAL)

    async def attempt(number: int, publish: Publish) -> Any:
        if number > 1:
            return await publish()
        await publish()
        for n in range(log.HISTORY + 1):
            await opened[1].put("guid", {"later": n})
        raise OLD[1]

    with monkeypatch.context() as patch:
        lose(patch, attempt)
        assert (await opened[0].put("guid", {"n": 2})).record.version == 2
    found = await opened[0].get("guid")
    assert (found.version, found.value) == (2 + log.HISTORY + 1, {"later": log.HISTORY})
    await close(cluster, opened)


async def test_write_arriving_after_failure_has_no_effect(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = await servers(cluster, 1)
    await opened[0].put("guid", {"n": 1}, consistency=Consistency.TOTAL)
    late: list[Publish] = []

    async def attempt(number: int, publish: Publish) -> Any:
        if number == 1:
            late.append(publish)
            raise nats.errors.TimeoutError
        return await publish()

    with monkeypatch.context() as patch:
        lose(patch, attempt)
        await opened[0].put("guid", {"n": 2})
    await opened[0].put("guid", {"n": 3})
    assert (await late[0]()).duplicate
    found = await opened[0].get("guid")
    assert (found.version, found.value) == (3, {"n": 3})
    await close(cluster, opened)


async def test_overtaken_write_without_answer_is_not_reported_as_done(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write is lost and another server's comes first: they are not confused."""
    opened = await servers(cluster, 2)
    await opened[0].put("guid", {"n": 1}, consistency=Consistency.TOTAL)

    async def attempt(number: int, publish: Publish) -> Any:
        if number == 1:
            await opened[1].put("guid", {"n": 2})
            raise nats.errors.TimeoutError
        return await publish()

    with monkeypatch.context() as patch:
        lose(patch, attempt)
        assert (await opened[0].put("guid", {"n": 2})).record.version == 3
    await close(cluster, opened)


async def test_nats_servers_that_lose_writes_are_rejected(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    await cluster.ready()
    monkeypatch.setattr(Client, "connected_server_version", property(lambda _: ServerVersion("2.9.10")))
    with pytest.raises(EngineError, match=r"nats-server 2\.9\.10 loses acknowledged writes: use 2\.11 or later"):
        await JetStream.open(cluster.urls, 1, [1])
    assert MIN_SERVER_VERSION == (2, 11)
