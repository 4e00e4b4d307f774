"""Packets per second of one core in process: frontage.p4 on its mix of packets and on each kind alone, and a plain router."""

from __future__ import annotations

from rows import Row, finish, rates, row
from sites import frontage, router


def measure() -> list[Row]:
    site = rates("pipeline", str(frontage().write()))
    rows = [row("pipeline_frontage_pps", site.pop("all"), "packets/s")]
    rows += [row(f"pipeline_frontage_pps_{kind}", value, "packets/s") for kind, value in site.items()]
    plain = rates("pipeline", str(router().write()))
    rows.append(row("pipeline_router_pps", plain["udp"], "packets/s"))
    return rows


if __name__ == "__main__":
    finish(measure)
