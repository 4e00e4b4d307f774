# SPDX-License-Identifier: Apache-2.0
"""A configuration of the largest size that fits into the P4 program."""

from __future__ import annotations


def large_config(servers: int, vips: int, *, address: str = "127.0.0.1:9559", p4info: str = "p4info", json: str = "json") -> str:
    """Return the YAML text of ``servers`` servers, each a neighbor, distributed over ``vips`` VIPs."""
    lines = [
        f"device: {{address: '{address}', cpu_port: 510, pipeline: {{p4info: {p4info}, json: {json}}}}}",
        "ports:",
        "  - {id: 1, name: uplink, role: client, mac: '02:00:00:00:01:01', gateways: [192.0.2.1/24]}",
        "  - {id: 2, name: rack, role: server, mac: '02:00:00:00:01:02', gateways: [10.0.0.1/16]}",
        "routes: [{prefix: 198.51.100.0/24, port: uplink, mac: '02:00:00:00:02:fe'}]",
        "keys: [{id: 1, secret: 000102030405060708090a0b0c0d0e0f}]",
        "neighbors:",
    ]
    for i in range(servers):
        mac = f"02:00:00:01:{i >> 8:02x}:{i & 255:02x}"
        lines.append(f"  - {{address: 10.0.{16 + (i >> 8)}.{i & 255}, port: rack, mac: '{mac}'}}")
    lines.append("vips:")
    for i in range(vips):
        lines.append(f"  - {{name: v{i}, address: 203.0.{112 + (i >> 8)}.{i & 255}, port: 80}}")
    lines.append("servers:")
    for i in range(servers):
        where = f"address: 10.0.{16 + (i >> 8)}.{i & 255}, port: 8080"
        lines.append(f"  - {{name: s{i}, vip: v{i % vips}, {where}, sid: {i}}}")
    return "\n".join(lines) + "\n"
