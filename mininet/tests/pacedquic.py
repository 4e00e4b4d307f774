# SPDX-License-Identifier: Apache-2.0
"""A testbed of QUIC servers with slow downloads."""

from __future__ import annotations

import json
from pathlib import Path

from frontage_testbed.datacentre.clients import Generator
from frontage_testbed.datacentre.quic import QuicTestbed
from frontage_testbed.datacentre.servers import PACED, WebServer

PACE = 2_000
"""Bytes per second of each download."""


class PacedTestbed(QuicTestbed):
    """A testbed with a slow nginx behind each server, so that connections last."""

    routes = '[[route]]\npath = "/"\norigin = "http://127.0.0.1"\n'

    def _start_servers(self) -> None:
        for server in self.server_addresses:
            self._servers.append(WebServer.start(self.servers[server.index], server, self.scratch, None, PACE))
        super()._start_servers()

    def generator(self, plan: Path) -> Generator:
        """Return a load generator for paced objects."""
        fast = super().generator(plan)
        return lambda index, start_ns: [*fast(index, start_ns), "--path", PACED]

    def logged(self) -> list[tuple[float, str, str]]:
        """Return the answered requests: time, the client's address and port, and the server's name."""
        requests = []
        for server in self.server_addresses:
            for line in map(json.loads, self._log(server.name)):
                requests.append((line["time"], line["client"], server.name))
        return sorted(requests)
