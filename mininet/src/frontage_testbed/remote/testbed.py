# SPDX-License-Identifier: Apache-2.0
"""The testbeds of a data centre with remote servers: over TCP and QUIC."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Self, TypeVar

import yaml

from ..datacentre.addresses import ServerAddresses
from ..datacentre.deployment import Deployment
from ..datacentre.edge import METRICS
from ..datacentre.quic import QuicTestbed
from ..datacentre.services import FILMS
from ..datacentre.settings import Settings
from ..datacentre.testbed import READY_TIMEOUT, Testbed
from ..metricsclient import scrape
from ..nodes import Namespace, NodeError, Topo
from ..sandbox import Sandbox
from .addresses import VTEP4, VTEP6, UnderlayAddresses
from .kinds import Tunnel
from .topology import FABRIC, RemoteDataCentre


def remote_testbed(parts: Deployment, settings: Settings, box: Sandbox, remote: int, tunnel: Tunnel) -> RemoteTestbed:
    """Return a TCP testbed whose first `remote` servers are remote, not yet up."""
    edge = parts.edge(settings, box)
    return _with_remote(RemoteTestbed(settings, box.scratch, edge, parts.agents(settings, box)), remote, tunnel)


def remote_quic_testbed(parts: Deployment, settings: Settings, box: Sandbox, remote: int, tunnel: Tunnel) -> RemoteQuicTestbed:
    """Return a testbed with QUIC services whose first `remote` servers are remote, not yet up."""
    edge = parts.edge(settings, box, services=FILMS)
    testbed = RemoteQuicTestbed(settings, box.scratch, edge, parts.quic_agent, parts.h3_client)
    return _with_remote(testbed, remote, tunnel)


class RemoteNetwork(Testbed):
    """The network of a testbed with remote servers, inside its context."""

    remote: int
    """Number of servers behind tunnels."""
    tunnel: Tunnel

    def topology(self) -> Topo:
        """Return the network, not yet up."""
        return RemoteDataCentre(settings=self.settings, remote=self.remote, tunnel=self.tunnel)

    def __enter__(self) -> Self:
        super().__enter__()
        if self.tunnel.in_user_space:
            for host, addresses in zip(self.hosts, self._host_addresses, strict=True):
                command = [sys.executable, "-m", "frontage_testbed.remote.endpoint"]
                with (self.scratch / f"{addresses.name}.log").open("wb") as log:
                    host.spawn([*command, *self.tunnel.endpoint_parameters(addresses)], stdout=log, stderr=log)
        return self

    @property
    def _host_addresses(self) -> list[UnderlayAddresses]:
        return [UnderlayAddresses(i) for i in range(self.remote)]

    @property
    def hosts(self) -> list[Namespace]:
        """The hosts on which tunnels end."""
        return [self.network[addresses.name] for addresses in self._host_addresses]

    @property
    def fabric(self) -> Namespace:
        """The router between the edge switch and the hosts."""
        router: Namespace = self.network[FABRIC]
        return router

    def wait_for(self, condition: Callable[[], bool], timeout: float = READY_TIMEOUT) -> None:
        """Wait until a condition holds. Raises NodeError."""
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline:
                raise NodeError(f"a condition did not hold within {timeout:g} s; logs are in {self.scratch}")
            time.sleep(0.05)

    def set_mtu(self, mtu: int) -> None:
        """Tell the controller another MTU of the network, and wait until the switch has it."""
        writes = scrape(METRICS).total("frontage_entry_writes_total")
        document = yaml.safe_load(self.edge.config.read_text())
        for server in document["servers"]:
            if "encapsulation" in server:
                server["encapsulation"]["mtu"] = mtu
        self.edge.write_configuration(yaml.safe_dump(document, sort_keys=False))
        changed = 3 * sum("encapsulation" in server for server in document["servers"])
        self.wait_for(lambda: scrape(METRICS).total("frontage_entry_writes_total") >= writes + changed)


class RemoteTestbed(RemoteNetwork):
    """A TCP testbed with remote servers, inside its context."""


class RemoteQuicTestbed(RemoteNetwork, QuicTestbed):
    """A testbed with QUIC services on remote servers, inside its context."""


R = TypeVar("R", bound=RemoteNetwork)


def _with_remote(testbed: R, remote: int, tunnel: Tunnel) -> R:
    config = testbed.edge.config
    config.write_text(with_tunnels(config.read_text(), [ServerAddresses(i) for i in range(remote)], tunnel))
    testbed.remote, testbed.tunnel = remote, tunnel
    return testbed


def with_tunnels(text: str, servers: list[ServerAddresses], tunnel: Tunnel) -> str:
    """Return a configuration in which the switch reaches these servers through tunnels."""
    document = yaml.safe_load(text)
    document["site"] = {"id": 1, "vtep": [VTEP4, VTEP6]}
    by_name = {server.name: UnderlayAddresses(server.index) for server in servers}
    document["routes"] = [route for route in document["routes"] if route["port"] not in by_name]
    for port in document["ports"]:
        if (host := by_name.get(port["name"])) is not None:
            port["gateways"] = [f"{host.edge4}/24", f"{host.edge6}/64"]
            for prefix, hop in (
                (f"{host.host4}/32", host.router4),
                (f"{host.host6}/128", host.router6),
                (host.segments, host.router6),
            ):
                document["routes"].append({"prefix": prefix, "port": port["name"], "next_hop": hop})
    for server in document["servers"]:
        if (host := by_name.get(server["name"].partition("-")[0])) is not None:
            server["encapsulation"] = tunnel.settings(host, 6 if ":" in server["address"] else 4)
    changed: str = yaml.safe_dump(document, sort_keys=False)
    return changed
