"""Packets per second of one core in process: frontage.p4 on its mix of packets and on each kind alone, a
plain router, and packet filters that grow."""

from __future__ import annotations

from rows import Row, finish, rates, row
from sites import frontage, packet_filter, router


def measure() -> list[Row]:
    site = rates("pipeline", str(frontage().write()))
    rows = [row("pipeline_frontage_pps", site.pop("all"), "packets/s")]
    rows += [row(f"pipeline_frontage_pps_{kind}", value, "packets/s") for kind, value in site.items()]
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
