# SPDX-License-Identifier: Apache-2.0
"""Operations that a record server relays to the site that orders the record's writes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any

import pytest
from nats.aio.msg import Msg

from frontage_records.errors import ConsistencyError, NotFoundError, OutcomeUnknownError, SiteError, VersionError
from frontage_records.jetstream import relay, repetition
from frontage_records.jetstream.engine import JetStream
from frontage_records.jetstream.placement_groups import PlacementGroup
from frontage_records.jetstream.relay import SUBJECT
from frontage_records.jetstream.write_cache import Location
from frontage_records.record import Consistency, Write, Written
from nats_cluster import Cluster
from records_engines import BOUNDS, NOW, Clock, cluster

__all__ = ["cluster"]

SITES = (1, 2, 3)


@pytest.fixture
async def testbed(cluster: Cluster) -> AsyncIterator[dict[int, JetStream]]:
    """A server at each of three sites; `guid` is at site 1."""
    await cluster.ready()
    servers = {site: await JetStream.open(cluster.urls, site, SITES, replicas=1, bounds=BOUNDS, clock=Clock()) for site in SITES}
    await servers[1].put("guid", {"n": 1}, consistency=Consistency.TOTAL)
    await servers[1].place("guid", [1, 2])
    for server in servers.values():
        # Now all servers know its group.
        assert (await server.get("guid")).version == 1
    yield servers
    for server in servers.values():
        await server.close()
    await cluster.clear()


def done_by(monkeypatch: pytest.MonkeyPatch) -> list[JetStream]:
    """Return the server that has done each write."""
    found: list[JetStream] = []
    write = JetStream._write_here

    async def instead(self: JetStream, one: Write, **how: Any) -> Written:
        written = await write(self, one, **how)
        found.append(self)
        return written

    monkeypatch.setattr(JetStream, "_write_here", instead)
    return found


async def gone(testbed: dict[int, JetStream]) -> None:
    """Close the server of site 1, and wait until all nats-servers know that it has no listener."""
    await testbed[1].close()
    for site in (2, 3):
        while True:
            with contextlib.suppress(TimeoutError):
                if await testbed[site].connection.request(f"{SUBJECT}.1", b"", 0.1) is None:
                    break


@pytest.mark.parametrize("site", SITES)
async def test_writes_run_at_ordering_site(testbed: dict[int, JetStream], monkeypatch: pytest.MonkeyPatch, site: int) -> None:
    by = done_by(monkeypatch)
    written = await testbed[site].put("guid", {"v": "ä", "deep": [1, None]}, if_version=1, stamp=NOW - 1)
    assert by == [testbed[1]]
    assert (written.record.version, written.record.stamp, written.applied) == (2, NOW - 1, True)
    assert await testbed[site].get("guid") == written.record
    assert (await testbed[site].delete("guid")).record.document is None
    with pytest.raises(NotFoundError):
        await testbed[site].get("guid")


async def test_relayed_refusals_equal_local_ones(testbed: dict[int, JetStream]) -> None:
    with pytest.raises(VersionError, match="guid: the record has version 1, expected version 7"):
        await testbed[3].put("guid", {}, if_version=7)
    with pytest.raises(ConsistencyError):
        await testbed[3].put("guid", {}, consistency=Consistency.EVENTUAL)


async def test_losing_write_returns_the_winner(testbed: dict[int, JetStream]) -> None:
    await testbed[1].put("other", {"n": 1}, stamp=NOW)
    await testbed[1].place("other", [1])
    lost = await testbed[3].put("other", {"n": 2}, stamp=NOW - 1)
    assert (lost.applied, lost.record.value) == (False, {"n": 1})


async def test_server_learns_new_group_from_relay_answer(testbed: dict[int, JetStream], monkeypatch: pytest.MonkeyPatch) -> None:
    await testbed[2].place("guid", [2])
    by = done_by(monkeypatch)
    for version in (2, 3, 4):
        assert (await testbed[3].put("guid", {})).record.version == version
    assert by == [testbed[2]] * 3, "the former first site redirects the first write"


async def test_former_first_site_redirects_reads(testbed: dict[int, JetStream], monkeypatch: pytest.MonkeyPatch) -> None:
    await testbed[2].place("guid", [2])
    ordered: list[JetStream] = []
    confirm = JetStream._confirm

    async def instead(self: JetStream, location: Location, guid: str) -> None:
        ordered.append(self)
        await confirm(self, location, guid)

    monkeypatch.setattr(JetStream, "_confirm", instead)
    assert (await testbed[3].get("guid")).version == 1
    assert ordered == [testbed[2]]


async def test_new_group_does_not_delay_writes(testbed: dict[int, JetStream], monkeypatch: pytest.MonkeyPatch) -> None:
    """A move waits for its new placement group; writes continue."""
    reached, release = asyncio.Event(), asyncio.Event()
    at = testbed[1].groups.at

    async def slow(sites: Sequence[int]) -> PlacementGroup:
        reached.set()
        await release.wait()
        return await at(sites)

    monkeypatch.setattr(testbed[1].groups, "at", slow)
    move = asyncio.create_task(testbed[2].place("guid", [3, 2]))
    await reached.wait()
    assert (await testbed[3].put("guid", {"n": 2})).record.version == 2
    release.set()
    await move
    assert await testbed[1].sites("guid") == (3, 2)
    assert (await testbed[1].get("guid")).value == {"n": 2}


async def test_sites_are_known_while_the_log_does_not_answer(
    testbed: dict[int, JetStream], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(testbed[3].locator, "find", silent)
    assert await testbed[3].sites("guid") == (1, 2)


async def test_moves_run_at_ordering_site(testbed: dict[int, JetStream], monkeypatch: pytest.MonkeyPatch) -> None:
    by: list[JetStream] = []
    place = JetStream._place_here

    async def instead(self: JetStream, guid: str, sites: Collection[int]) -> None:
        by.append(self)
        await place(self, guid, sites)

    monkeypatch.setattr(JetStream, "_place_here", instead)
    await testbed[3].place("guid", [2, 3])
    await testbed[1].place("guid", [3])
    assert by == [testbed[1], testbed[2]]
    assert await testbed[2].sites("guid") == (3,)
    with pytest.raises(SiteError, match="unknown site 9"):
        await testbed[1].place("guid", [9])
    with pytest.raises(NotFoundError):
        await testbed[1].place("missing", [2])


async def test_client_only_server_gets_no_relayed_operations(
    testbed: dict[int, JetStream], cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking = await JetStream.open(cluster.urls, 1, SITES, replicas=1, serves=False)
    by = done_by(monkeypatch)
    for _ in range(8):
        await testbed[3].put("guid", {})
    assert by == [testbed[1]] * 8
    await looking.close()


async def test_operation_runs_locally_without_remote_server(testbed: dict[int, JetStream], monkeypatch: pytest.MonkeyPatch) -> None:
    await gone(testbed)
    by = done_by(monkeypatch)
    assert (await testbed[3].put("guid", {"n": 2})).record.version == 2
    assert by == [testbed[3]]
    assert (await testbed[2].get("guid")).value == {"n": 2}


async def test_missing_answer_leaves_outcome_unknown(testbed: dict[int, JetStream], monkeypatch: pytest.MonkeyPatch) -> None:
    """A read is an exception: it is repeated locally."""
    await gone(testbed)

    async def silent(_: Msg) -> None:
        """Behave as if the server died during the operation."""

    await testbed[2].connection.listen(f"{SUBJECT}.1", silent)
    with contextlib.suppress(TimeoutError):
        # Wait until the nats-server of site 3 knows the listener.
        while await testbed[3].connection.request(f"{SUBJECT}.1", b"", 0.1) is None:
            pass
    monkeypatch.setattr(relay, "ANSWER_TIMEOUT", 0.1)
    monkeypatch.setattr(repetition, "OPERATION_TIMEOUT", 0.5)
    with pytest.raises(OutcomeUnknownError, match="site 1 does not answer"):
        await testbed[3].put("guid", {"n": 2})
    assert (await testbed[3].get("guid")).value == {"n": 1}


async def test_servers_that_relay_to_each_other_do_not_deadlock(testbed: dict[int, JetStream]) -> None:
    """Site 1 has cached that the record is at site 2, and site 2 that it is at site 1."""
    for server, site in ((testbed[1], 2), (testbed[2], 1)):
        group = await server.groups.at([site])
        server.locator.remember("guid", group.name)
    reads = await asyncio.gather(*(testbed[site].get("guid") for site in SITES for _ in range(4)))
    assert {record.version for record in reads} == {1}
    for n, site in enumerate(SITES, start=2):
        assert (await testbed[site].put("guid", {})).record.version == n
