# SPDX-License-Identifier: Apache-2.0
"""Packets per second of one core in process, and instructions and hardware events per packet.

The programs are frontage.p4 and its counterpart for Tofino 2 with TCP and QUIC traffic, mixed and each kind alone, a plain
router, and packet filters of several sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

from rows import Row, finish, output, row
from sites import Site, frontage, packet_filter, quic, router, tofino, tofino_quic


@dataclass(frozen=True)
class Speed:
    """Speed of one kind of packet."""

    packets_per_second: float
    instructions: float | None
    """Per packet; None where ptrace is forbidden."""
    events: dict[str, float] | None
    """Hardware events per packet, by name; None without hardware counters."""

    def rows(self, name: str, kind: str = "") -> list[Row]:
        """Return the rows of a site, or of one kind of its packets."""
        suffix = f"_{kind}" if kind else ""
        events = dict(self.events or {})
        if self.instructions is not None:
            events["instructions"] = self.instructions
        return [
            row(f"{name}_pps{suffix}", self.packets_per_second, "packets/s"),
            *(row(f"{name}_{event}{suffix}", count, f"{event}/packet") for event, count in events.items()),
        ]


def measure() -> list[Row]:
    downloads = (frontage(), quic(), tofino(), tofino_quic())
    rows = []
    for site, kinds in zip(downloads, pipeline_speeds(*downloads), strict=True):
        rows += kinds.pop("all").rows(f"pipeline_{site.name}")
        for kind, speed in kinds.items():
            rows += speed.rows(f"pipeline_{site.name}", kind)
    filters = {
        **{f"acl_{rules}": packet_filter(rules) for rules in (100, 1_000, 10_000)},
        "acl_random_masks_10000": packet_filter(10_000, "random"),
    }
    others = {"router": router(), **filters}
    for name, kinds in zip(others, pipeline_speeds(*others.values()), strict=True):
        [speed] = kinds.values()
        rows += speed.rows(f"pipeline_{name}")
    return rows


def pipeline_speeds(*sites: Site) -> list[dict[str, Speed]]:
    """Measure sites in turn; return the speeds of each by kind of packet."""
    measured = output("pipeline", *(str(site.write()) for site in sites))
    return [{kind: Speed(**speed) for kind, speed in kinds.items()} for kinds in measured]


if __name__ == "__main__":
    finish(measure)
