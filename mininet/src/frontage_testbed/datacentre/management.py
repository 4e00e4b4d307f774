# SPDX-License-Identifier: Apache-2.0
"""The management network: a link from the controller's machine to a server that does not pass through the edge switch."""

from __future__ import annotations

from ..nodes import Namespace, run_script

INTERFACE = "management"
CONTROLLER, SERVER = "192.168.255.1", "192.168.255.2"


def attach(server: Namespace) -> None:
    """Connect the machine of the controller to a server, which gets the address `SERVER`. Raises NodeError."""
    peer = f"peer name {INTERFACE} netns {server.pid}"
    run_script(INTERFACE, [f"ip link add {INTERFACE} type veth {peer}", *_up(CONTROLLER)])
    run_script(server.name, _up(SERVER), server.pid)


def _up(address: str) -> list[str]:
    return [f"ip addr add {address}/30 dev {INTERFACE}", f"ip link set {INTERFACE} up"]
