# SPDX-License-Identifier: Apache-2.0
"""The load of the recirculation ports by workload, and the line rate that remains (docs/tofino.md, "Recirculation")."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from tofino import FOLDER, ROOT, page, save

GOLDEN = FOLDER / "recirculation.json"

PORTS = 16
"""Ports of a pipe of Tofino 1."""
PORT_RATE = 100e9
"""Bits per second of each port, also of the recirculation port."""
PIPE_RATE = 1.22e9
"""Packets per second of a gress of a pipe: one packet in each cycle."""
WIRE_BYTES = 24
"""Frame check sequence, preamble, and gap between frames."""


@dataclass(frozen=True)
class Load:
    """Means for each packet that enters a pipe, if all pipes have the same traffic."""

    wire_bytes: float
    """Bytes of the packet on the wire."""
    workers: float
    """Worker packets that its pipe recirculates."""
    second_passes: float
    recirculated_bytes: float
    """Bytes through the recirculation port of its pipe, as on a wire."""
    resubmissions: float

    @property
    def line_rate(self) -> float:
        """Packets per second of a pipe if all its ports receive at full rate."""
        return PORTS * PORT_RATE / (8 * self.wire_bytes)

    @property
    def port_share(self) -> float:
        """Load of the recirculation port at line rate; above 1, the port drops packets."""
        return self.line_rate * 8 * self.recirculated_bytes / PORT_RATE

    @property
    def remaining(self) -> float:
        """Share of the line rate at which neither the recirculation port nor the pipe drops packets."""
        passes = 1 + self.workers + self.second_passes + self.resubmissions
        return min(1.0, 1 / max(1.0, self.port_share), PIPE_RATE / (self.line_rate * passes))


def load(kinds: dict[str, dict[str, int]]) -> Load:
    """Return the load of a workload's counts."""

    def total(name: str) -> int:
        return sum(counts[name] for counts in kinds.values())

    packets, workers, second_passes = total("packets"), total("workers"), total("second_passes")
    recirculated = total("worker_bytes") + total("second_pass_bytes") + WIRE_BYTES * (workers + second_passes)
    resubmissions = sum(counts["packets"] * counts["resubmissions"] / counts["traced"] for counts in kinds.values())
    return Load(
        wire_bytes=total("bytes") / packets + WIRE_BYTES,
        workers=workers / packets,
        second_passes=second_passes / packets,
        recirculated_bytes=recirculated / packets,
        resubmissions=resubmissions / packets,
    )


def block(counted: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the page."""
    header = ("workload", "profile", "pipes", "workers", "second passes", "resubmissions", "digests")
    rates = ("port load", "line rate")
    rows = []
    for entry in counted:
        kinds = entry["kinds"]
        mean = load(kinds)
        digests = sum(counts["digests"] for counts in kinds.values()) / sum(counts["packets"] for counts in kinds.values())
        per_packet = (f"{value:.3f}" for value in (mean.workers, mean.second_passes, mean.resubmissions, digests))
        shares = (f"{100 * value:,.0f} %" for value in (mean.port_share, mean.remaining))
        rows.append((entry["workload"], f"`{entry['profile']}`", entry["pipes"], *per_packet, *shares))
    return page.table((*header, *rates), *rows)


def write() -> None:
    """Count the passes, and write the page and recirculation.json."""
    done = subprocess.run([sys.executable, ROOT / "bench" / "passes.py"], stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise SystemExit("bench/passes.py: failed: see the message above")
    counted = json.loads(done.stdout)
    save(GOLDEN, counted)
    page.write("recirculation", block(counted))
