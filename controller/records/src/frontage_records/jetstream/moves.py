# SPDX-License-Identifier: Apache-2.0
"""Moves of whole placement groups, with rollback.

nats-server moves a Raft group online: servers of the new site catch up and join, then the old ones leave. Until then a majority is
counted over both, so a new site that fails in between can block the group's writes until it is back. A move that does not complete
is rolled back: the group gets its old placement again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from nats.js.errors import NotFoundError

from frontage_records.errors import EngineError
from frontage_records.jetstream.connection import Connection
from frontage_records.jetstream.placement_groups import PlacementGroup, PlacementGroups, tag

MOVE_TIMEOUT = 300.0
"""Seconds for a move. A move takes longer for larger groups: each new server copies all data over the wide area."""
_MIN_ROLLBACK_TIMEOUT = 30.0
"""Least number of seconds for a rollback."""
_POLL_INTERVAL = 0.25

Report: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """The state of a placement group's Raft group."""

    settled: bool
    """Whether the group has all its servers, at its first site, and all are up to date."""
    description: str
    servers: tuple[str, ...]
    """Names of the servers, the leader first if there is one."""


class MoveError(EngineError):
    """The move did not complete."""


async def group_status(connection: Connection, group: PlacementGroup) -> GroupStatus:
    """Return the status of a placement group. Raises EngineError."""
    try:
        info = await connection.info(group.stream)
    except NotFoundError:
        raise EngineError(f"no such placement group: {group.name}") from None
    config, cluster = info["config"], info.get("cluster") or {}
    leader, peers = cluster.get("leader"), cluster.get("replicas") or []
    servers = (*([leader] if leader else []), *(peer["name"] for peer in peers))
    pending = _pending(group, config, cluster)
    return GroupStatus(not pending, pending or "settled", servers)


def _pending(group: PlacementGroup, config: dict[str, Any], cluster: dict[str, Any]) -> str:
    """Return what the group is waiting for; empty if it is settled."""
    peers = cluster.get("replicas") or []
    desired = cluster.get("desired")
    if tag(group.sites[0]) not in ((config.get("placement") or {}).get("tags") or []):
        return "the stream has another placement"
    if desired is not None:
        return str((desired.get("status") or {}).get("description") or "starting")
    if cluster and not cluster.get("leader"):
        return "electing a leader"
    if len(peers) != config["num_replicas"] - 1:
        return f"{len(peers) + 1} servers instead of {config['num_replicas']}"
    late = [peer["name"] for peer in peers if not peer.get("current")]
    return f"waiting for {', '.join(late)}" if late else ""


async def move(
    connection: Connection,
    groups: PlacementGroups,
    name: str,
    sites: Sequence[int],
    *,
    limit: float = MOVE_TIMEOUT,
    report: Report = lambda _: None,
) -> PlacementGroup:
    """Move a placement group to ``sites``, and return once it is there.

    After ``limit`` seconds, or on cancellation, the move is rolled back first. Raises SiteError and EngineError (nothing has
    changed), MoveError (rolled back, or rollback in progress).
    """
    before = await groups.get(name)
    if before is None:
        raise EngineError(f"no such placement group: {name}")
    moved = await groups.move(name, sites)
    try:
        last = await _wait_until_settled(connection, moved, limit, report)
    except asyncio.CancelledError:
        await asyncio.shield(_roll_back(connection, groups, before, limit, report))
        raise
    if not last.settled:
        await _roll_back(connection, groups, before, limit, report)
        raise MoveError(f"{name}: not done in {limit:g} s ({last.description}): it is at {_text(before)} again; allow more time")
    return moved


async def _roll_back(connection: Connection, groups: PlacementGroups, before: PlacementGroup, limit: float, report: Report) -> None:
    report(f"rolling back to {_text(before)}")
    problem: Exception = TimeoutError("no answer")
    try:
        async with asyncio.timeout(_MIN_ROLLBACK_TIMEOUT + limit):
            await connection.cancel_move(before.stream)
            while True:
                try:
                    await groups.move(before.name, before.sites)
                    break
                except EngineError as error:
                    # The servers are still busy with the cancelled move.
                    problem = error
                    await asyncio.sleep(_POLL_INTERVAL)
    except TimeoutError:
        raise MoveError(f"{before.name}: cannot be rolled back to {_text(before)} now: {problem}: move it there again") from None
    last = await _wait_until_settled(connection, before, _MIN_ROLLBACK_TIMEOUT + limit, report)
    if not last.settled:
        raise MoveError(f"{before.name}: rollback to {_text(before)} is in progress: {last.description}")


async def _wait_until_settled(connection: Connection, group: PlacementGroup, limit: float, report: Report) -> GroupStatus:
    """Wait until the group is settled, and return its last status."""
    status = GroupStatus(False, "starting", ())
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limit):
            while not status.settled:
                try:
                    current = await group_status(connection, group)
                except EngineError as error:
                    # Without a leader the status is unknown until the timeout.
                    current = GroupStatus(False, str(error), ())
                if current.description != status.description:
                    report(current.description)
                status = current
                await asyncio.sleep(0 if status.settled else _POLL_INTERVAL)
    return status


def _text(group: PlacementGroup) -> str:
    return f"site {', '.join(map(str, group.sites))}"
