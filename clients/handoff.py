# SPDX-License-Identifier: Apache-2.0
"""A client's download from real servers (docs/handoff.md), with the bytes of each sender."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from catalogue import Client
from frontage_testbed.datacentre.qdsr import QdsrTestbed
from rounds import difference, download_of, offer


class Handed:
    """Downloads in a running testbed with real servers."""

    def __init__(self, testbed: QdsrTestbed) -> None:
        self._testbed = testbed
        offer(testbed)
        self._hosts = iter(testbed.clients.values())

    def download(self, client: Client, program: Path) -> dict[str, Any]:
        """Return the result of a client's download on its own host."""
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
