"""Operations that a record server leaves to one at the site that has the record's order."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection

import pytest
from nats.aio.msg import Msg

from frontage_records.errors import ConsistencyError, NotFoundError, OutcomeUnknownError, SiteError, VersionError
from frontage_records.jetstream import relay
from frontage_records.jetstream.engine import JetStream
from frontage_records.jetstream.relay import SUBJECT
from frontage_records.record import Consistency, Write, Written
from nats_cluster import Cluster
from records_engines import BOUNDS, NOW, Clock, cluster

__all__ = ["cluster"]

SITES = (1, 2, 3)


@pytest.fixture
async def world(cluster: Cluster) -> AsyncIterator[dict[int, JetStream]]:
    """A server at each of three sites; `guid` is at site 1."""
    await cluster.ready()
    servers = {site: await JetStream.open(cluster.urls, site, SITES, replicas=1, bounds=BOUNDS, clock=Clock()) for site in SITES}
    await servers[1].put("guid", {"n": 1}, consistency=Consistency.TOTAL)
    await servers[1].place("guid", [1, 2])
    for server in servers.values():
        # So all know where it is.
        assert (await server.get("guid")).version == 1
    yield servers
    for server in servers.values():
        await server.close()
    await cluster.clear()


def done_by(monkeypatch: pytest.MonkeyPatch) -> list[JetStream]:
    """Which server has done each write."""
    found: list[JetStream] = []
    write = JetStream._write_here

    async def instead(self: JetStream, one: Write) -> Written:
        found.append(self)
        return await write(self, one)

    monkeypatch.setattr(JetStream, "_write_here", instead)
    return found


async def gone(world: dict[int, JetStream]) -> None:
    """Close site 1's, and wait until all nats-servers have heard that nobody listens there."""
    await world[1].close()
    for site in (2, 3):
        while True:
            with contextlib.suppress(TimeoutError):
                if await world[site].connection.request(f"{SUBJECT}.1", b"", 0.1) is None:
                    break


@pytest.mark.parametrize("site", SITES)
async def test_writes_are_done_at_the_records_first_site(
    world: dict[int, JetStream], monkeypatch: pytest.MonkeyPatch, site: int
) -> None:
    by = done_by(monkeypatch)
    written = await world[site].put("guid", {"v": "ä", "deep": [1, None]}, if_version=1, stamp=NOW - 1)
    assert by == [world[1]]
    assert (written.record.version, written.record.stamp, written.applied) == (2, NOW - 1, True)
    assert await world[site].get("guid") == written.record
    assert (await world[site].delete("guid")).record.document is None
    with pytest.raises(NotFoundError):
        await world[site].get("guid")


async def test_its_refusals_are_those_of_any_server(world: dict[int, JetStream]) -> None:
    with pytest.raises(VersionError, match="guid is version 1, not version 7"):
        await world[3].put("guid", {}, if_version=7)
    with pytest.raises(ConsistencyError):
        await world[3].put("guid", {}, consistency=Consistency.EVENTUAL)


async def test_a_write_that_loses_comes_back_with_the_winner(world: dict[int, JetStream]) -> None:
    await world[1].put("other", {"n": 1}, stamp=NOW)
    await world[1].place("other", [1])
    lost = await world[3].put("other", {"n": 2}, stamp=NOW - 1)
    assert (lost.applied, lost.record.value) == (False, {"n": 1})


async def test_who_is_told_where_a_record_has_gone_asks_there_next(
    world: dict[int, JetStream], monkeypatch: pytest.MonkeyPatch
) -> None:
    await world[2].place("guid", [2])
    by = done_by(monkeypatch)
    for version in (2, 3, 4):
        assert (await world[3].put("guid", {})).record.version == version
    assert by[1:] == [world[2]] * 2


async def test_a_record_is_moved_by_its_first_site(world: dict[int, JetStream], monkeypatch: pytest.MonkeyPatch) -> None:
    by: list[JetStream] = []
    place = JetStream._place_here

    async def instead(self: JetStream, guid: str, sites: Collection[int]) -> None:
        by.append(self)
        await place(self, guid, sites)

    monkeypatch.setattr(JetStream, "_place_here", instead)
    await world[3].place("guid", [2, 3])
    await world[1].place("guid", [3])
    assert by == [world[1], world[2]]
    assert await world[2].sites("guid") == (3,)
    with pytest.raises(SiteError, match="there is no site 9"):
        await world[1].place("guid", [9])
    with pytest.raises(NotFoundError):
        await world[1].place("missing", [2])


async def test_who_only_looks_is_left_nothing_to_do(
    world: dict[int, JetStream], cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking = await JetStream.open(cluster.urls, 1, SITES, replicas=1, serves=False)
    by = done_by(monkeypatch)
    for _ in range(8):
        await world[3].put("guid", {})
    assert by == [world[1]] * 8
    await looking.close()


async def test_without_a_server_there_it_is_done_here(world: dict[int, JetStream], monkeypatch: pytest.MonkeyPatch) -> None:
    await gone(world)
    by = done_by(monkeypatch)
    assert (await world[3].put("guid", {"n": 2})).record.version == 2
    assert by == [world[3]]
    assert (await world[2].get("guid")).value == {"n": 2}


async def test_who_gets_no_answer_does_not_know(world: dict[int, JetStream], monkeypatch: pytest.MonkeyPatch) -> None:
    """But of a read, which is done again."""
    await gone(world)

    async def silent(_: Msg) -> None:
        """As if it died with the question in hand."""

    await world[2].connection.listen(f"{SUBJECT}.1", silent)
    with contextlib.suppress(TimeoutError):
        # Until site 3's nats-server has heard of it.
        while await world[3].connection.request(f"{SUBJECT}.1", b"", 0.1) is None:
            pass
    monkeypatch.setattr(relay, "OPERATION_TIMEOUT", 0.1)
    with pytest.raises(OutcomeUnknownError, match="site 1 does not answer"):
        await world[3].put("guid", {"n": 2})
    assert (await world[3].get("guid")).value == {"n": 1}


async def test_two_servers_that_leave_it_to_each_other_wait_for_nobody(world: dict[int, JetStream]) -> None:
    """Site 1 thinks that the record is still at site 2, which thinks that it is at site 1."""
    for server, site in ((world[1], 2), (world[2], 1)):
        group = await server.groups.at([site])
        server.locator.remember("guid", group.name)
    reads = await asyncio.gather(*(world[site].get("guid") for site in SITES for _ in range(4)))
    assert {record.version for record in reads} == {1}
    for n, site in enumerate(SITES, start=2):
        assert (await world[site].put("guid", {})).record.version == n
