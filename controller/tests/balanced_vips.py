# SPDX-License-Identifier: Apache-2.0
"""A pipeline with the controller's entries for VIPs of several sizes, and packets of their servers, clients and controller."""

import random
import struct
from collections.abc import Iterator
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any, NamedTuple

import softswitch
from conftest import EXAMPLE
from frontage.config import Config, loads
from frontage.state.allocation import Installed, allocate
from frontage_ptf.cookie import connection_hash
from scheduled_ports import HOST_MAC, KEY, SWITCH_MAC, switch

CPU_PORT = 510
CLIENTS, SERVERS = 2, 1
"""Ports."""
SET = 1
"""Operation that stores a score, like a report."""
UNIT = 16
"""Score of a flow at the lightest server of a VIP."""


class Server(NamedTuple):
    vip: int
    sid: int
    slot: int
    """Slot in the tree, counted from the first one of the VIP."""
    weight: int
    active: bool
    """False while the server drains."""
    address: IPv6Address


class Vip(NamedTuple):
    number: int
    """The configuration's number."""
    id: int
    """The switch's number."""
    address: IPv6Address
    base: int
    depth: int
    servers: tuple[Server, ...]


def configuration(policy: str, weights: dict[int, list[int]]) -> Config:
    """Return a configuration with VIPs of a policy, and the weights of each VIP's servers. Every fifth server of a VIP drains."""
    server_at = "2001:db8:a:{}::{:x}"
    text: dict[str, Any] = {
        "device": {"address": "unix:x", "cpu_port": CPU_PORT, "pipeline": {"p4info": "x", "json": "x"}},
        "ports": [
            {"id": SERVERS, "name": "servers", "role": "server", "mac": SWITCH_MAC.hex(":")},
            {"id": CLIENTS, "name": "clients", "role": "client", "mac": SWITCH_MAC.hex(":")},
        ],
        "routes": [
            {"prefix": "2001:db8:a::/48", "port": "servers", "mac": HOST_MAC.hex(":")},
            {"prefix": "2001:db8:c::/48", "port": "clients", "mac": HOST_MAC.hex(":")},
        ],
        "keys": [{"id": KEY.id, "secret": KEY.secret.hex()}],
        "vips": [{"name": f"v{n}", "address": f"2001:db8:f::{n}", "port": 80, "policy": policy} for n in weights],
        "servers": [
            {
                "name": f"s{n}-{i}",
                "vip": f"v{n}",
                "address": server_at.format(n, i + 1),
                "port": 8080,
                "sid": 100 * n + i,
                "weight": weight,
                "state": "draining" if i % 5 == 4 else "active",
            }
            for n, own in weights.items()
            for i, weight in enumerate(own)
        ],
    }
    return loads(str(text), EXAMPLE)


class Balanced:
    """A pipeline that serves VIPs, by number."""

    def __init__(self, program: softswitch.Program, policy: str, weights: dict[int, list[int]], folder: Path):
        config = configuration(policy, weights)
        self.pipeline = switch(program, config, folder)
        allocation = allocate(config, Installed({}))
        self.vips = []
        for number in weights:
            block = allocation.trees[f"v{number}"]
            servers = tuple(
                Server(number, s.sid, allocation.slots[s.sid] - block.base, s.weight, s.active, IPv6Address(str(s.address)))
                for s in config.servers
                if s.vip == f"v{number}"
            )
            self.vips.append(
                Vip(
                    number, allocation.vip_ids[f"v{number}"], IPv6Address(f"2001:db8:f::{number}"), block.base, block.depth, servers
                )
            )
        self._sids = {server.address: server.sid for vip in self.vips for server in vip.servers}

    def server_at(self, vip: Vip, slot: int) -> tuple[int, int] | None:
        """Return SID and score of the server that a slot sends up, from the register of two-choices and prequal."""
        value = self.pipeline.register("FrontageIngress.cclb4.tree.servers", vip.base + slot)
        return (value & 0xFFF, 0xFFFF - (value >> 16)) if value >> 16 else None

    def operate(self, op: int, vip: Vip, server: Server, score: int = 0) -> None:
        """Send the controller's packet that seeds, clears or sets a leaf."""
        assert self.pipeline.send(struct.pack(">BBHHH", op, vip.depth, vip.base + server.slot, server.sid, score), CPU_PORT) == []

    def report(self, server: Server, client: IPv6Address, port: int, loads: tuple[int, int, int], time_ns: int) -> None:
        """Send a packet of a server with TCP's codes of RPT, N_AF and N_FF."""
        rpt, n_af, n_ff = loads
        options = struct.pack(">BBBBII", 1, 1, 8, 10, rpt << 10 | n_af << 5 | n_ff, 5)
        frame = _segment(server.address, client, struct.pack(">HHIIBBHHH", 8080, port, 1, 2, 0x88, 0x10, 99, 0xBEEF, 0) + options)
        assert [to for to, _ in self.pipeline.send(frame, SERVERS, time_ns)] == [CLIENTS]

    def begin(self, vip: Vip, client: IPv6Address, port: int, time_ns: int) -> int:
        """Send a SYN and return the SID of the server that gets it."""
        options = struct.pack(">BBBBII", 1, 1, 8, 10, 7, 0)
        frame = _segment(client, vip.address, struct.pack(">HHIIBBHHH", port, 80, 1, 0, 0x80, 0x02, 99, 0xBEEF, 0) + options)
        ((to, sent),) = self.pipeline.send(frame, CLIENTS, time_ns)
        assert to == SERVERS
        return self._sids[IPv6Address(sent[38:54])]


def clients(rng: random.Random) -> Iterator[tuple[IPv6Address, int]]:
    """Yield addresses and ports of clients."""
    while True:
        yield IPv6Address(0x20010DB8_000C0000_00000000_00000000 | rng.getrandbits(64)), rng.randrange(1024, 65536)


def hash_of(vip: Vip, client: IPv6Address, port: int) -> int:
    """Return the hash of a connection."""
    return connection_hash(client, vip.address, port, 80)


def _segment(source: IPv6Address, destination: IPv6Address, payload: bytes) -> bytes:
    head = struct.pack(">IHBB", 6 << 28, len(payload), 6, 64) + source.packed + destination.packed
    return SWITCH_MAC + HOST_MAC + b"\x86\xdd" + head + payload
