# SPDX-License-Identifier: Apache-2.0
"""Tables alone, by kind and size: lookups, insertions and deletions per second of one core, and memory per million entries.

Each memory measurement has its own process.
"""

from __future__ import annotations

from paths import ROOT
from rows import Row, finish, rates, row
from sites import compiled

SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
KINDS = {
    "exact": SIZES,
    "lpm32": SIZES,
    "lpm128": SIZES,
    "ternary": SIZES,
    # With random masks, more entries are not realistic.
    "scattered": (10, 100, 1_000, 10_000),
}
MILLION = 1_000_000
MIB = 1 << 20


def measure() -> list[Row]:
    program, _ = compiled(ROOT / "bench" / "p4" / "tables.p4")
    rows = []
    for kind, sizes in KINDS.items():
        for size in sizes:
            rate = rates("table", str(program), kind, str(size))
            rows.append(row(f"table_{kind}_{size}_lookups", rate["lookups"], "lookups/s"))
        rows += [row(f"table_{kind}_{sizes[-1]}_{change}", rate[change], "entries/s") for change in ("insertions", "deletions")]
    for kind, sizes in KINDS.items():
        if MILLION in sizes:
            growth = rates("memory", str(program), kind, str(MILLION))["bytes"]
            rows.append(row(f"memory_{kind}_per_million_entries", growth / MIB, "MiB"))
    return rows


if __name__ == "__main__":
    finish(measure)
