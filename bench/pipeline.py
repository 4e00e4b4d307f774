# SPDX-License-Identifier: Apache-2.0
"""Packets per second of one core in process.

The programs are frontage.p4 and its counterpart for Tofino 2 with TCP and QUIC traffic, mixed and each kind alone, a plain
router, and packet filters of several sizes.
"""

from __future__ import annotations

from rows import Row, finish, rates_of_each, row
from sites import Site, frontage, packet_filter, quic, router, tofino, tofino_quic


def measure() -> list[Row]:
    downloads = (frontage(), quic(), tofino(), tofino_quic())
    rows = []
    for site, kinds in zip(downloads, pipeline_rates(*downloads), strict=True):
        rows.append(row(f"pipeline_{site.name}_pps", kinds.pop("all"), "packets/s"))
        rows += [row(f"pipeline_{site.name}_pps_{kind}", value, "packets/s") for kind, value in kinds.items()]
    filters = {
        **{f"acl_{rules}": packet_filter(rules) for rules in (100, 1_000, 10_000)},
        "acl_random_masks_10000": packet_filter(10_000, "random"),
    }
    others = {"router": router(), **filters}
    for name, kinds in zip(others, pipeline_rates(*others.values()), strict=True):
        [rate] = kinds.values()
        rows.append(row(f"pipeline_{name}_pps", rate, "packets/s"))
    return rows


def pipeline_rates(*sites: Site) -> list[dict[str, float]]:
    """Measure sites in turn; return the rates of each by kind of packet."""
    return rates_of_each("pipeline", *(str(site.write()) for site in sites))


if __name__ == "__main__":
    finish(measure)
