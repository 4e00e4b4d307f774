# SPDX-License-Identifier: Apache-2.0
"""Three regions at measured distances: a namespace for each, and a softswitch between them.

    r1 (three nats-servers, clients) --+
    r2                               --+-- wan (frontage_testbed.wan.switch)
    r3                               --+

Each region has a second link, to the testbed's root namespace. The scenario uses it to reach the region without delay,
also while its links to the others are cut.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from frontage_testbed.natsservers import Servers
from frontage_testbed.nodes import CONGESTION_CONTROL, Namespace, Network, NodeError, Topo, run_script
from frontage_testbed.programs import ours
from frontage_testbed.wan.addresses import WAN_MAC, Host
from frontage_testbed.wan.latency import Latencies
from frontage_testbed.wan.switch import Wan
from frontage_testbed.wan.topology import WAN, wan_interface

from .servers import Region, servers

REGIONS = ("eu-central-1", "us-east-1", "ap-northeast-1")
"""Regions of sites 1, 2 and 3."""


@dataclass(frozen=True)
class Programs:
    """Paths of the programs that the testbed runs."""

    switch: Path
    compiler: Path
    nats: Path

    @classmethod
    def of(cls, folder: Path, nats: Path) -> Programs:
        """Find our programs in `folder`. Raises NodeError if one is missing."""
        switch, compiler = ours(folder, "softswitch", "softswitch-p4c")
        if not nats.is_file():
            raise NodeError(f"{nats} is missing: `make build/nats-server` builds it")
        return cls(switch, compiler, nats)


class _Regions(Topo):  # type: ignore[misc]
    def build(self, hosts: Sequence[Host]) -> None:
        """Add hosts and links; mininet calls this."""
        ports = [f"ip link set {wan_interface(host.port)} up" for host in hosts]
        for host in hosts:
            manage = f"m{host.port}"
            ports += [
                f"echo 0 > /proc/sys/net/ipv6/conf/{manage}/disable_ipv6",
                f"ip addr add {_management(host, 1)}/64 dev {manage} nodad",
                f"ip -6 route add {host.prefix}/64 via {_management(host, 2)} src {_management(host, 1)}",
            ]
        self.addSwitch(WAN, dpid="1", inNamespace=False, setup=ports)
        for host in hosts:
            setup = [
                f"ip addr add {_management(host, 2)}/64 dev eth1 nodad",
                f"ip addr add {host.address}/64 dev eth0 nodad",
                f"ip -6 neigh replace {host.gateway} lladdr {WAN_MAC} dev eth0 nud permanent",
                f"ip -6 route add default via {host.gateway} {CONGESTION_CONTROL}",
            ]
            self.addHost(host.name, setup=setup)
            self.addLink(WAN, host.name, intfName1=wan_interface(host.port), intfName2="eth0", addr2=host.mac)
            self.addLink(WAN, host.name, intfName1=f"m{host.port}", intfName2="eth1")


def _management(host: Host, end: int) -> str:
    return f"fd00:{host.port:x}::{end}"


@dataclass(frozen=True)
class Testbed:
    """A running testbed."""

    servers: Servers
    regions: tuple[Region, ...]

    def cut(self, site: int, away: bool) -> None:
        """Cut a region's links to the others (`away`), or restore them."""
        run_script(WAN, [f"ip link set {wan_interface(site)} {'down' if away else 'up'}"])


def round_trip(a: int, b: int) -> float:
    """Return the round-trip time between two sites in milliseconds."""
    return Latencies.published().rtt(REGIONS[a - 1], REGIONS[b - 1])


@contextlib.contextmanager
def bring_up(programs: Programs, folder: Path, seed: int) -> Iterator[Testbed]:
    """Run a testbed within a context. Its processes end with the namespaces of the caller."""
    hosts = [Host(f"g{site}", region, f"2001:db8:{0x100 + site:x}::", site) for site, region in enumerate(REGIONS, start=1)]
    network = Network(_Regions(hosts=hosts))
    network.start()
    wan = Wan(
        switch=programs.switch,
        compiler=programs.compiler,
        directory=folder / "wan",
        latencies=Latencies.published(),
        hosts=hosts,
        sites=[],
        seed=seed,
        loss={},
    )
    wan.start()
    regions = tuple(_region(host, network.get(host.name)) for host in hosts)
    nats = servers(programs.nats, folder, regions)
    try:
        yield Testbed(nats, regions)
    finally:
        nats.stop()
        wan.stop()


def _region(host: Host, namespace: Namespace) -> Region:
    def spawn(command: Sequence[str | Path], log: IO[bytes]) -> subprocess.Popen[bytes]:
        return namespace.spawn(command, stdout=log, stderr=log)

    return Region(host.port, host.address, spawn)
