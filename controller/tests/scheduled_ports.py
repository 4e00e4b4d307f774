# SPDX-License-Identifier: Apache-2.0
"""A pipeline with the controller's entries for ports with schedulers, and packets of any rank to these ports.

Queues are as deep as a test says: the program is made to read depths from the clock, so that the time that is given with a packet
is a depth, in microseconds.
"""

import socket
import struct
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

from finsy.proto import p4i

import softswitch
from conftest import EXAMPLE
from frontage.config import Config, loads
from frontage.cookie import CookieKey, Ip6Cookie
from frontage.p4.p4info import Schema
from frontage.p4.replication import replicas_of
from frontage.state.allocation import Installed, allocate
from frontage.state.desired import desired
from frontage.state.worker import session

CLOCK_FOR_DEPTH = """
#include <v1model.p4>
#define deq_qdepth egress_global_timestamp[18:0]
#define enq_qdepth ingress_global_timestamp[18:0]
#include "frontage.p4"
"""
KEY = CookieKey(4, bytes(range(16)))
SWITCH_MAC, HOST_MAC = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")


def configuration(ports: dict[int, dict[str, Any]]) -> Config:
    """Return a configuration with servers on port 1 and a network 2001:db8:N::/48 on each port N with a scheduler."""
    text = {
        "device": {"address": "unix:x", "cpu_port": 510, "pipeline": {"p4info": "x", "json": "x"}},
        "ports": [{"id": 1, "name": "servers", "role": "server", "mac": SWITCH_MAC.hex(":")}]
        + [{"id": n, "name": f"p{n}", "role": "client", "mac": "02:00:00:00:00:03", **port} for n, port in ports.items()],
        "routes": [{"prefix": f"2001:db8:{n}::/48", "port": f"p{n}", "mac": "02:00:00:00:00:04"} for n in ports],
        "keys": [{"id": KEY.id, "secret": KEY.secret.hex()}],
    }
    return loads(str(text), EXAMPLE)


def switch(program: softswitch.Program, config: Config, folder: Path) -> softswitch.Pipeline:
    """Return a pipeline with all entries of the configuration."""
    assert program.p4info is not None
    file = folder / "p4info.txtpb"
    file.write_text(program.p4info)
    tables = Schema.load(file).tables
    pipeline = softswitch.Pipeline(program)
    for key, action in desired(config, allocate(config, Installed({}))).items():
        name = tables[key.table].full_name
        known = program.tables[name]
        action_name = next(full for full in known["actions"] if full.rpartition(".")[2] == action.name)
        params = dict(zip(program.actions[action_name], action.params, strict=True))
        if key.match:
            pipeline.insert(name, dict(zip(known["key"], key.match, strict=True)), action_name, params)
        else:
            pipeline.set_default(name, action_name, params)
    for key, action in session(schema("v1model"), config).items():
        assert isinstance(key.match[0], int)
        pipeline.set_clone_session(key.match[0], [port for port, _ in replicas_of(action)])
    return pipeline


def quic(rank: int, port: int) -> bytes:
    """Return a frame in transit from a server, with a dynamic cookie."""
    prefix = socket.inet_pton(socket.AF_INET6, "2001:db8:5::")[:8]
    source = prefix + KEY.seal_ip6(Ip6Cookie(7, rpt=rank, dynamic=True)).to_bytes(8, "big")
    return _ipv6(source, port, 17, struct.pack(">HHHH", 443, 50000, 20, 0xBEEF) + b"\x40" + bytes(11))


def tcp(code: int, port: int) -> bytes:
    """Return a frame with a cookie in the TCP timestamp, with CK."""
    source = socket.inet_pton(socket.AF_INET6, "2001:db8:5::7")
    options = struct.pack(">BBBBII", 1, 1, 8, 10, code << 10, 5)
    return _ipv6(source, port, 6, struct.pack(">HHIIBBHHH", 80, 50000, 1, 2, 0x88, 0x10, 99, 0xBEEF, 0) + options)


def plain(port: int) -> bytes:
    return _ipv6(
        IPv6Address("2001:db8:5::7").packed, port, 6, struct.pack(">HHIIBBHHH", 80, 50000, 1, 2, 0x50, 0x10, 99, 0xBEEF, 0)
    )


def _ipv6(source: bytes, port: int, protocol: int, payload: bytes) -> bytes:
    head = struct.pack(">IHBB", 6 << 28, len(payload), protocol, 64) + source + IPv6Address(f"2001:db8:{port}::9").packed
    return SWITCH_MAC + HOST_MAC + b"\x86\xdd" + head + payload


def wide(code: int) -> int:
    """Return the IPv6 code of a TCP code."""
    return code if code < 8 else 2 * code - 8


def frames(port: int, default: int) -> list[tuple[int, bytes]]:
    """Return packets to a port with their ranks: from QUIC cookies, from TCP cookies and without a cookie."""
    every = [(rank, quic(rank, port)) for rank in range(256)]
    short = [(wide(code), tcp(code, port)) for code in range(64)]
    return every + 3 * short + 20 * [(default, plain(port))]


def schema(architecture: str, *counters: str) -> Schema:
    """Return the schema of a program that has only counters."""
    p4info = p4i.P4Info(pkg_info=p4i.PkgInfo(arch=architecture))
    for number, name in enumerate(counters, start=1):
        p4info.counters.add(preamble=p4i.Preamble(id=number, name=name))
    return Schema(p4info)
