# SPDX-License-Identifier: Apache-2.0
"""Mininet's nodes and links for testbeds. No other module imports mininet.

Mininet configures each interface with several commands, which takes long for dozens of hosts. Here one shell script
sets up a whole node, so a testbed is up within seconds. `Mininet.init` would raise limits of the whole machine, so it
does not run.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from mininet.link import Intf, Link
from mininet.net import Mininet
from mininet.node import Host, Switch
from mininet.topo import Topo


class NodeError(RuntimeError):
    """A node could not be set up."""


# The kernel completes checksums and segments large packets only when a packet leaves through a physical interface. On a
# veth it never does, so a switch that reads the frames would see unfinished checksums and 64 KB "packets".
OFFLOADS_OFF = "ethtool -K {interface} tx off rx off tso off gso off gro off >/dev/null"

CONGESTION_CONTROL = "congctl cubic"
"""Option for a host's routes. The kernel's default differs by distribution, and results must not depend on it.

The sysctl would not do: a namespace may set it only to algorithms that the machine's administrator allows.
"""

TCP_SETTINGS = {
    "net/ipv4/tcp_timestamps": "1",
    # A connection must not inherit metrics of an earlier one.
    "net/ipv4/tcp_no_metrics_save": "1",
    "net/ipv6/conf/all/accept_dad": "0",
}


class _BareIntf(Intf):  # type: ignore[misc]
    """An interface that its node's set-up script configures."""

    def config(self, **_params: Any) -> dict[str, Any]:
        return {}


class Namespace(Host):  # type: ignore[misc]
    """A host whose `setup` parameter holds the lines of a shell script."""

    def config(self, setup: Sequence[str] = (), **_params: Any) -> dict[str, Any]:
        """Run the set-up script in the node's namespaces."""
        lines = [f"echo {value} > /proc/sys/{name}" for name, value in TCP_SETTINGS.items()]
        lines.append("ip link set lo up")
        for interface in self.intfNames():
            lines.append(OFFLOADS_OFF.format(interface=interface))
            # Skip duplicate address detection, so that addresses are usable at once.
            lines.append(f"echo 0 > /proc/sys/net/ipv6/conf/{interface}/accept_dad")
            lines.append(f"ip link set {interface} up")
        run_script(self.name, [*lines, *setup], self.pid)
        return {}

    def spawn(self, command: Sequence[str | Path], **options: Any) -> subprocess.Popen[bytes]:
        """Start a process in the node's namespaces. The kernel ends it with the testbed."""
        return subprocess.Popen(
            ["mnexec", "-da", str(self.pid), *(str(c) for c in command)],
            stdin=subprocess.DEVNULL,
            **options,
        )

    def run(self, command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command in the node's namespaces and return its output. Raises NodeError if it fails."""
        return _run(self.name, ["mnexec", "-a", str(self.pid), *(str(c) for c in command)], **options)


class EdgePort(Switch):  # type: ignore[misc]
    """The node of the edge switch's interfaces: the testbed's root namespace, in which the switch process runs."""

    def config(self, setup: Sequence[str] = (), **_params: Any) -> dict[str, Any]:
        """Bring the ports up without addresses, so that no protocol of the kernel sends on them."""
        lines = []
        for interface in self.intfNames():
            if interface != "lo":
                lines.append(OFFLOADS_OFF.format(interface=interface))
                lines.append(f"echo 1 > /proc/sys/net/ipv6/conf/{interface}/disable_ipv6")
                lines.append(f"ip link set {interface} up")
        run_script(self.name, [*lines, *setup])
        return {}

    def start(self, _controllers: Sequence[object]) -> None:
        """Configure the ports."""
        self.config(**self.params)


# Keeps `Mininet.init` from raising limits and sysctls of the whole machine permanently.
Mininet.inited = True


class Network(Mininet):  # type: ignore[misc]
    """Mininet without its OpenFlow defaults."""

    def __init__(self, topo: Topo) -> None:
        super().__init__(topo=topo, host=Namespace, switch=EdgePort, link=Link, intf=_BareIntf, controller=None)


def run_script(where: str, lines: Sequence[str], pid: int | None = None) -> None:
    """Run shell lines, in the namespaces of process `pid` if given. Raises NodeError with the output of the first failure."""
    enter = ["mnexec", "-a", str(pid)] if pid else []
    _run(where, [*enter, "sh", "-euc", "\n".join(lines)])


def _run(where: str, command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise NodeError(f"{where}: {' '.join(command[-2:])!s:.300} failed: {(done.stderr or done.stdout).strip()}")
    return done


def spawn(command: Sequence[str | Path], log: IO[bytes] | int) -> subprocess.Popen[bytes]:
    """Start a process in the testbed's root namespace. The kernel ends it with the testbed."""
    return subprocess.Popen(
        [str(c) for c in command],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # the demo itself handles Ctrl-C
    )


__all__ = ["CONGESTION_CONTROL", "EdgePort", "Namespace", "Network", "NodeError", "Topo", "run_script", "spawn"]
