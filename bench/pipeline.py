# SPDX-License-Identifier: Apache-2.0
"""Packets per second of one core in process.

The programs are frontage.p4 and its counterpart for Tofino 2 with TCP and QUIC traffic, mixed and each kind alone, a plain
router, and packet filters of several sizes.
"""

from __future__ import annotations

from rows import Row, finish, rates, row
from sites import frontage, packet_filter, quic, router, tofino, tofino_quic


def measure() -> list[Row]:
    rows = []
    for site in (frontage(), quic(), tofino(), tofino_quic()):
        kinds = rates("pipeline", str(site.write()))
        rows.append(row(f"pipeline_{site.name}_pps", kinds.pop("all"), "packets/s"))
        rows += [row(f"pipeline_{site.name}_pps_{kind}", value, "packets/s") for kind, value in kinds.items()]
    plain = rates("pipeline", str(router().write()))
    rows.append(row("pipeline_router_pps", plain["udp"], "packets/s"))
    for rules in (100, 1_000, 10_000):
        rate = rates("pipeline", str(packet_filter(rules).write()))
        rows.append(row(f"pipeline_acl_{rules}_pps", rate["acl"], "packets/s"))
    scattered = rates("pipeline", str(packet_filter(10_000, "random").write()))
    rows.append(row("pipeline_acl_random_masks_10000_pps", scattered["acl"], "packets/s"))
    return rows


if __name__ == "__main__":
    finish(measure)
