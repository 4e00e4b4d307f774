# SPDX-License-Identifier: Apache-2.0
"""Links with softswitch's own rate, delay and loss.

mininet's TCLink uses the kernel's netem. Where the kernel lacks netem, TCLink prints an error and continues without delay
and loss. Here, a switch shapes what its ports send. In the other direction, from a host to a switch or between hosts, a
wire does: a softswitch between the two interfaces.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import fields
from itertools import count
from pathlib import Path
from typing import Any

from mininet.link import Link
from mininet.node import Node

from .processes import Process
from .programs import WIRE, compiled, executable
from .settings import UNSUPPORTED, LinkError, Settings

__all__ = ["LinkError", "SoftLink"]

_wires = count(1)
_FIELDS = tuple(field.name for field in fields(Settings))


def shapes(node: Any) -> bool:
    """Return whether a node itself shapes what it sends."""
    return bool(getattr(node, "shapes_links", False))


class SoftLink(Link):  # type: ignore[misc]
    """A link with the parameters `bw` (Mbit/s), `delay` ("5ms"), `loss` (percent) and `max_queue_size` (frames).

    They apply to both directions; in `params1` and `params2` to what the first and the second node sends.
    """

    def __init__(
        self,
        node1: Node,
        node2: Node,
        port1: int | None = None,
        port2: int | None = None,
        params1: Mapping[str, Any] | None = None,
        params2: Mapping[str, Any] | None = None,
        **params: Any,
    ) -> None:
        if unsupported := [name for name in UNSUPPORTED if params.get(name)]:
            raise LinkError(f"{unsupported[0]}: not a parameter of SoftLink: use {', '.join(_FIELDS)}")
        both = {name: params.pop(name) for name in _FIELDS if name in params}
        rest1, rest2 = dict(params1 or {}), dict(params2 or {})
        self.settings1 = Settings(**both | {name: rest1.pop(name) for name in _FIELDS if name in rest1})
        """Settings of the direction from the first node."""
        self.settings2 = Settings(**both | {name: rest2.pop(name) for name in _FIELDS if name in rest2})
        """Settings of the direction from the second node."""
        self._wire: _Wire | None = None
        to2 = Settings() if shapes(node1) else self.settings1
        to1 = Settings() if shapes(node2) else self.settings2
        self._wired = (to1, to2) if to1.option() or to2.option() else None
        super().__init__(node1, node2, port1=port1, port2=port2, params1=rest1, params2=rest2, **params)

    def settings_of(self, interface: Any) -> Settings:
        """Return the settings of what an interface of this link sends."""
        return self.settings1 if interface is self.intf1 else self.settings2

    def makeIntfPair(self, name1: str, name2: str, *rest: Any, **options: Any) -> Any:  # noqa: N802
        """Create the interfaces; mininet calls this."""
        if self._wired is None:
            return super().makeIntfPair(name1, name2, *rest, **options)
        address1, address2, node1, node2 = rest
        self._wire = _Wire((name1, address1, node1), (name2, address2, node2), *self._wired)
        return name1, name2

    def delete(self) -> None:
        """Delete the link; mininet calls this."""
        if self._wire is not None:
            self._wire.stop()
            self._wire = None
        super().delete()


class _Wire:
    """A softswitch between an interface of each of two nodes."""

    def __init__(
        self, end1: tuple[str, str | None, Node], end2: tuple[str, str | None, Node], to1: Settings, to2: Settings
    ) -> None:
        number = next(_wires)
        self._folder = tempfile.TemporaryDirectory(prefix="softswitch-wire-")
        folder = Path(self._folder.name)
        command = [executable(), str(compiled(WIRE, folder)), "--threads", "1", "--seed", str(number)]
        self._inner = []
        for port, (name, address, node), settings in ((1, end1, to1), (2, end2, to2)):
            inner = f"w{os.getpid()}n{number}-{port}"[-15:]
            self._inner.append(inner)
            _pair(name, address, node, inner)
            command += ["-i", f"{port}@{inner}"]
            if option := settings.option():
                command += ["--link", f"{port}:{option}"]
        self._process = Process([*command, "--", "--grpc-server-addr", "127.0.0.1:0"], folder / "wire.log")

    def stop(self) -> None:
        self._process.stop()
        for inner in self._inner:
            subprocess.run(["ip", "link", "delete", inner], capture_output=True, check=False)
        self._folder.cleanup()


def _pair(name: str, address: str | None, node: Node, inner: str) -> None:
    """Create an interface in a node's network namespace, whose other end is in that of this program."""
    with_address = f"address {address} " if address else ""
    if output := node.cmd(f"ip link add name {name} {with_address}type veth peer name {inner} netns {os.getpid()}"):
        raise LinkError(f"{name}: cannot create the interface: {output.strip()}")
    # Without addresses, the kernel does not send frames of its own.
    subprocess.run(["ip", "link", "set", inner, "addrgenmode", "none", "up"], check=True)
