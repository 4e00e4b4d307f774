# SPDX-License-Identifier: Apache-2.0
"""The TCP testbed of a whole data centre: network, objects, servers with their agents, edge switch and controller."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from ..load.objects import write_objects
from ..load.outcome import Outcome
from ..load.workload import Arrival
from ..nodes import Namespace, Network, NodeError, Topo
from .addresses import HTTP_PORT, VIP4, VIP6, ClientAddresses, ServerAddresses
from .clients import Generator, over_tcp
from .edge import EdgeSwitch
from .servers import WebServer
from .settings import Settings
from .topology import DataCentre

READY_TIMEOUT = 30.0


class Agents(Protocol):
    """The servers' agents, which add cookies to responses."""

    module: Path | None
    """nginx's module to load, if any."""

    def attach(self, hosts: Mapping[int, Namespace]) -> None:
        """Attach to every server's link."""

    def active_flows(self) -> list[int]:
        """Return the current number of active flows of each server."""

    def stop(self) -> None:
        """Detach."""


class Testbed:
    """A testbed that answers requests to the VIPs, inside its context."""

    def __init__(self, settings: Settings, scratch: Path, edge: EdgeSwitch, agents: Agents) -> None:
        self.settings = settings
        self.scratch = scratch
        self.client_addresses = [ClientAddresses(i) for i in range(settings.clients)]
        self.server_addresses = [ServerAddresses(i) for i in range(settings.servers)]
        self.agents = agents
        self.edge = edge
        self._servers: list[WebServer] = []

    def __enter__(self) -> Self:
        began = time.monotonic()
        self.network = Network(self.topology())
        self.network.start()
        self.edge.start()
        self.agents.attach(self.servers)
        (self.scratch / "objects").mkdir()
        self._start_servers()
        self.startup_seconds = time.monotonic() - began
        return self

    def __exit__(self, *_error: type[BaseException] | BaseException | TracebackType | None) -> None:
        # Everything lives in namespaces that end with this process (see sandbox); this only keeps the logs clean.
        self.edge.stop()
        self.agents.stop()
        for server in self._servers:
            server.stop()

    def topology(self) -> Topo:
        """Return the network, not yet up."""
        return DataCentre(settings=self.settings)

    def _start_servers(self) -> None:
        for server in self.server_addresses:
            self._servers.append(WebServer.start(self.servers[server.index], server, self.scratch, self.agents.module))

    @property
    def clients(self) -> dict[int, Namespace]:
        """The client hosts by index."""
        return {c.index: self.network[c.name] for c in self.client_addresses}

    @property
    def servers(self) -> dict[int, Namespace]:
        """The server hosts by index."""
        return {s.index: self.network[s.name] for s in self.server_addresses}

    @property
    def web_servers(self) -> list[WebServer]:
        """The running servers."""
        return self._servers

    @property
    def server_pids(self) -> list[int]:
        """Process ids of nginx, masters and workers."""
        masters = [server.process.pid for server in self._servers]
        workers = (Path(f"/proc/{pid}/task/{pid}/children").read_text().split() for pid in masters)
        return masters + [int(pid) for pids in workers for pid in pids]

    def offer_objects(self, sizes: Iterable[int]) -> None:
        """Have the servers serve objects of these sizes."""
        write_objects(self.scratch / "objects", sizes)

    def generator(self, plan: Path) -> Generator:
        """Return the load generator that replays a plan against the service."""
        return over_tcp(plan, VIP4)

    def with_servers(self, _plan: Sequence[Arrival], outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
        """Return the outcomes with the server that answered each; nginx already names itself in a header."""
        return tuple(outcomes)

    def retransmitted(self) -> int | None:
        """Return the segments that the servers' kernels have retransmitted (RFC 4022, tcpRetransSegs)."""
        total = 0
        for host in self.servers.values():
            names, values = (
                line.split() for line in Path(f"/proc/{host.pid}/net/snmp").read_text().splitlines() if line[:4] == "Tcp:"
            )
            total += int(values[names.index("RetransSegs")])
        return total

    def wait_until_ready(self, timeout: float = READY_TIMEOUT) -> None:
        """Wait until the edge switch is programmed and both VIPs answer a client."""
        self.edge.wait_until_installed()
        deadline = time.monotonic() + timeout
        for vip in (VIP4, VIP6):
            while not self._answers(vip):
                if time.monotonic() > deadline:
                    raise NodeError(f"no answer from VIP {vip} port {HTTP_PORT} within {timeout:g} s; logs are in {self.scratch}")
                time.sleep(0.05)

    def _answers(self, vip: str) -> bool:
        address = f"[{vip}]" if ":" in vip else vip
        fetch = "import sys, urllib.request as u; sys.exit(u.urlopen(sys.argv[1], timeout=1).status != 204)"
        command = [sys.executable, "-c", fetch, f"http://{address}:{HTTP_PORT}/health"]
        return self.clients[0].spawn(command, stderr=subprocess.DEVNULL).wait() == 0
