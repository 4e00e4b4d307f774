"""A client's download where real servers answer (docs/handoff.md), and who sent it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from catalogue import Client
from frontage_demo.qdsr import QdsrWorld
from rounds import difference, download_of, offer


class Handed:
    """A world with real servers that is up, with the object."""

    def __init__(self, world: QdsrWorld) -> None:
        self._world = world
        offer(world)
        self._hosts = iter(world.clients.values())

    def one_of(self, client: Client, program: Path) -> dict[str, Any]:
        """What there is to say of a client, from a download on a host of its own."""
        before = self._world.bodies()
        download = download_of(client, program, "handed", next(self._hosts), self._world)
        download.begin()
        done = download.finish()
        sent = difference(self._world.bodies(), before)
        balancer = sent.pop(self._world.balancer.name, 0)
        return {
            "whole": done.whole,
            "status": done.status,
            "right": done.right,
            "balancer": balancer,
            "real_servers": sum(sent.values()),
            "log": done.log,
        }
