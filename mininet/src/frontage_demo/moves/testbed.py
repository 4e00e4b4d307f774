# SPDX-License-Identifier: Apache-2.0
"""A testbed whose QUIC servers move their clients and hand them over."""

from __future__ import annotations

import time
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path

from frontage.config import load
from frontage.cookie import Ip6Cookie
from frontage_testbed.datacentre.addresses import COOKIE_PREFIX, QUIC_PORT, ServerAddresses
from frontage_testbed.datacentre.quic import QuicTestbed
from frontage_testbed.datacentre.quicagents import METRICS
from frontage_testbed.metricsclient import parse

MOVES = "frontage_cclb7_quic_moves_total"
"""The servers' metric of moves and hand-overs."""


class MovingTestbed(QuicTestbed):
    """A QUIC testbed in which each server has an order file."""

    fields = '[moves]\norder = "order.toml"\nmin_interval_seconds = 0\n'

    def _order_file(self, server: ServerAddresses) -> Path:
        return self.key_file.with_name(f"{server.name}-order.toml")

    def _start(self, server: ServerAddresses, program: Path, configuration: str) -> None:
        super()._start(server, program, configuration.replace('"order.toml"', f'"{self._order_file(server).name}"'))

    def order(self, what: str, address: str, servers: Sequence[ServerAddresses] = ()) -> float:
        """Give an order to these servers, or to all, and return when: seconds since the epoch."""
        chosen = servers or self.server_addresses
        for server in chosen:
            self._order_file(server).write_text(f'{what} = ["{address}"]\n')
        ordered = time.time()
        self.reload_keys(chosen)
        return ordered

    def cookie_address(self, server: ServerAddresses) -> str:
        """Return the address and port at which clients reach a server directly, under the newest key."""
        key = max(load(self.edge.config).cookie_keys, key=lambda key: key.id)
        address = ip_network(COOKIE_PREFIX)[key.seal_ip6(Ip6Cookie(sid=server.sid6))]
        return f"[{address}]:{QUIC_PORT}"

    def have_moved(self, count: int) -> bool:
        """Return whether clients have completed this many moves, over all servers."""
        return self.moves("move", "completed") >= count

    def moves(self, kind: str, outcome: str, servers: Sequence[ServerAddresses] = ()) -> int:
        """Return the clients with this outcome at these servers, or at all."""
        page = f"http://{METRICS[0]}:{METRICS[1]}/metrics"
        hosts = [self.servers[server.index] for server in servers or self.server_addresses]
        scrapes = [parse(host.run(["curl", "-s", page]).stdout) for host in hosts]
        return sum(int(metrics.total(MOVES, kind=kind, outcome=outcome)) for metrics in scrapes)
