"""A client's download where real servers answer (docs/handoff.md), and who sent it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from catalogue import Client
from frontage_testbed.datacentre.qdsr import QdsrTestbed
from rounds import difference, download_of, offer


class Handed:
    """A testbed with real servers that is up, with the object."""

    def __init__(self, testbed: QdsrTestbed) -> None:
        self._testbed = testbed
        offer(testbed)
        self._hosts = iter(testbed.clients.values())

    def one_of(self, client: Client, program: Path) -> dict[str, Any]:
        """What there is to say of a client, from a download on a host of its own."""
        before = self._testbed.bodies()
        download = download_of(client, program, "handed", next(self._hosts), self._testbed)
        download.begin()
        done = download.finish()
        sent = difference(self._testbed.bodies(), before)
        balancer = sent.pop(self._testbed.balancer.name, 0)
        return {
            "whole": done.whole,
            "status": done.status,
            "right": done.right,
            "balancer": balancer,
            "real_servers": sum(sent.values()),
            "log": done.log,
        }
