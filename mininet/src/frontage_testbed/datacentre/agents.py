# SPDX-License-Identifier: Apache-2.0
"""The eBPF agents of the TCP servers: they add cookies to responses and count active flows."""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..bpfmap import PinnedMap
from ..nodes import Namespace, NodeError
from .addresses import HTTP_PORT, ServerAddresses
from .configuration import LOOK_AHEAD

PORT_KEY = struct.Struct("=H")
LOADS = struct.Struct("=QQ")
"""Key and value of the agent's map `servers`: a listening port, and its N_AF and N_FF counters."""


class Cclb7Agents:
    """`frontage-cclb7` on every server's link."""

    def __init__(self, binary: Path, module: Path, pins: Path, bandwidth: int) -> None:
        """`pins` is on a BPF file system; `bandwidth` is the assumed rate of a connection in bit/s."""
        self.module: Path | None = module
        self._binary = binary
        self._pins = pins
        self._bandwidth = bandwidth
        self._indices: list[int] = []
        self._loads: list[PinnedMap] = []

    def attach(self, hosts: Mapping[int, Namespace]) -> None:
        """Attach to all servers in parallel: the kernel's verifier takes a moment for each."""
        self._attach(hosts)
        self._indices = sorted(hosts)
        self._loads = [PinnedMap(self._pin_directory(i) / "servers", PORT_KEY.size, LOADS.size) for i in self._indices]

    def use_syn_keys(self, hosts: Mapping[int, Namespace], keys: Path) -> None:
        """Give all agents the key file, for connections whose SYN the switch answers."""
        self._attach(hosts, "--syn-keys", keys)

    def packets(self) -> list[dict[str, int]]:
        """Return the packets of each agent by outcome."""
        command: list[str | Path] = [self._binary, "stats", "--json", "--pin-dir"]
        pins = [self._pin_directory(index) for index in self._indices]
        outputs = [subprocess.run([*command, pin], capture_output=True, text=True, check=True).stdout for pin in pins]
        return [json.loads(output)["packets"] for output in outputs]

    def _attach(self, hosts: Mapping[int, Namespace], *options: str | Path) -> None:
        started = [(index, self._start(index, host, options)) for index, host in hosts.items()]
        for index, process in started:
            output, _ = process.communicate()
            if process.returncode != 0:
                name = ServerAddresses(index).name
                raise NodeError(f"{name}: attaching the agent failed: {output.strip()}")

    def _pin_directory(self, index: int) -> Path:
        return self._pins / ServerAddresses(index).name

    def _start(self, index: int, host: Namespace, options: Sequence[str | Path]) -> subprocess.Popen[str]:
        command: list[str | Path] = [
            self._binary,
            "attach",
            "--netns",
            f"/proc/{host.pid}/ns/net",
            "--interface",
            "eth0",
        ]
        command += ["--port", str(HTTP_PORT), "--pin-dir", self._pin_directory(index)]
        command += ["--look-ahead", f"{LOOK_AHEAD}b", "--bandwidth", f"{self._bandwidth}bit", *options]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def active_flows(self) -> list[int]:
        """Return N_AF of every server."""
        return [self._active(loads) for loads in self._loads]

    @staticmethod
    def _active(loads: PinnedMap) -> int:
        value = loads.get(PORT_KEY.pack(HTTP_PORT))
        return int(LOADS.unpack(value)[0]) if value else 0

    def stop(self) -> None:
        """Close the maps. The programs end with the testbed's mount namespace, in which they are pinned."""
        for loads in self._loads:
            loads.close()


class NoAgents:
    """Servers without agents, for comparison: without cookies, every connection takes the fallback."""

    module: Path | None = None

    def attach(self, hosts: Mapping[int, Namespace]) -> None:
        """Do nothing."""

    def active_flows(self) -> list[int]:
        """Return an empty list: nothing is counted."""
        return []

    def stop(self) -> None:
        """Do nothing."""
