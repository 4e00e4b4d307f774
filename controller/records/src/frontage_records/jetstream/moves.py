"""Moving a class as a whole, to its end or back again.

nats-server moves the Raft group online: the new site's servers catch up, join, and the old ones leave. Until they have left, a
majority is one of both together, so a new site that dies in between can stop the group's writes until it is back. A move that does
not get to its end is taken back: the group's servers are wanted again where they were.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from nats.js.errors import NotFoundError

from frontage_records.errors import EngineError
from frontage_records.jetstream.connection import Link
from frontage_records.jetstream.streams import Classes, StreamClass, tag

PATIENCE = 300.0
"""Seconds for a move; it grows with what the class holds, which goes over the wide area once for each new server."""
_LEAST = 30.0
"""Seconds for the way back, however little time there was for the way out."""
_LOOK = 0.25

Report: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a class's Raft group is on its way."""

    settled: bool
    """It has its full number of servers, at its first site, all of them up to date."""
    says: str
    servers: tuple[str, ...]
    """Their names, the leader's first if there is one."""


class MoveError(EngineError):
    """The move did not get to its end."""


async def standing(link: Link, one: StreamClass) -> Standing:
    """Raises EngineError."""
    try:
        info = await link.info(one.stream)
    except NotFoundError:
        raise EngineError(f"there is no class {one.name}") from None
    config, cluster = info["config"], info.get("cluster") or {}
    leader, peers = cluster.get("leader"), cluster.get("replicas") or []
    servers = (*([leader] if leader else []), *(peer["name"] for peer in peers))
    says = _says(one, config, cluster)
    return Standing(not says, says or "settled", servers)


def _says(one: StreamClass, config: dict[str, Any], cluster: dict[str, Any]) -> str:
    """What is still to be done; empty if nothing is."""
    peers = cluster.get("replicas") or []
    desired = cluster.get("desired")
    if tag(one.sites[0]) not in ((config.get("placement") or {}).get("tags") or []):
        return "its placement is another"
    if desired is not None:
        return str((desired.get("status") or {}).get("description") or "starting")
    if cluster and not cluster.get("leader"):
        return "electing a leader"
    if len(peers) != config["num_replicas"] - 1:
        return f"{len(peers) + 1} servers instead of {config['num_replicas']}"
    late = [peer["name"] for peer in peers if not peer.get("current")]
    return f"waiting for {', '.join(late)}" if late else ""


async def move(
    link: Link,
    classes: Classes,
    name: str,
    sites: Sequence[int],
    *,
    patience: float = PATIENCE,
    report: Report = lambda _: None,
) -> StreamClass:
    """Returns when the class is at ``sites``. Where that takes longer than ``patience`` seconds, or the caller is cancelled, it is
    taken back first. Raises SiteError and EngineError (nothing is changed), MoveError (taken back, or on its way back)."""
    before = await classes.get(name)
    if before is None:
        raise EngineError(f"there is no class {name}")
    moved = await classes.move(name, sites)
    try:
        last = await _settle(link, moved, patience, report)
    except asyncio.CancelledError:
        await asyncio.shield(_take_back(link, classes, before, patience, report))
        raise
    if not last.settled:
        await _take_back(link, classes, before, patience, report)
        raise MoveError(f"{name}: not done in {patience:g} s ({last.says}); it is at {_text(before)} again")
    return moved


async def _take_back(link: Link, classes: Classes, before: StreamClass, patience: float, report: Report) -> None:
    report(f"taking it back to {_text(before)}")
    problem: Exception = TimeoutError("no answer")
    try:
        async with asyncio.timeout(_LEAST + patience):
            await link.cancel_move(before.stream)
            while True:
                try:
                    await classes.move(before.name, before.sites)
                    break
                except EngineError as error:
                    # The servers are still busy with what was cancelled.
                    problem = error
                    await asyncio.sleep(_LOOK)
    except TimeoutError:
        raise MoveError(f"{before.name}: cannot be taken back to {_text(before)} now: {problem}; move it there again") from None
    last = await _settle(link, before, _LEAST + patience, report)
    if not last.settled:
        raise MoveError(f"{before.name}: is on its way back to {_text(before)}: {last.says}")


async def _settle(link: Link, one: StreamClass, patience: float, report: Report) -> Standing:
    """The last that was seen of it."""
    found = Standing(False, "starting", ())
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(patience):
            while not found.settled:
                try:
                    seen = await standing(link, one)
                except EngineError as error:
                    # Without a leader nobody knows, for as long as `patience` says.
                    seen = Standing(False, str(error), ())
                if seen.says != found.says:
                    report(seen.says)
                found = seen
                await asyncio.sleep(0 if found.settled else _LOOK)
    return found


def _text(one: StreamClass) -> str:
    return f"site {', '.join(map(str, one.sites))}"
