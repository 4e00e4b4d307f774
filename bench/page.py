"""Writes docs/performance.md and its plot from what the benchmarks have left in build/bench.

Example: bench/page.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from cells import Rows, compared, figure, number, ratio, table
from frontage_testbed.reporting.plots import Axis, Line, plot
from page_servers import quic, table1
from paths import ROOT, WORK
from tables import KINDS

DOCS = ROOT / "docs"
PLOT = "performance-tables.svg"
PROGRAMS = {
    "router": "IPv4 router, 1,000 routes",
    "frontage": "`frontage.p4`, TCP",
    "quic": "`frontage.p4`, QUIC",
    "acl": "packet filter, 10,000 rules",
}
IN_PROCESS = {
    "router": "pipeline_router_pps",
    "frontage": "pipeline_frontage_pps",
    "quic": "pipeline_quic_pps",
    "acl": "pipeline_acl_10000_pps",
}
COLOURS = ("#0550ae", "#0a7d84", "#8250df", "#bc4c00", "#cf222e")
STYLE = "text { font: 11px sans-serif; fill: #57606a; } .grid { stroke: #d0d7de; } .line { fill: none; stroke-width: 1.8; }"
STYLE += "".join(f" .s{number} {{ stroke: {colour}; }} .t{number} {{ fill: {colour}; }}" for number, colour in enumerate(COLOURS))

INTRODUCTION = """# Performance

`make bench` measures, and `make performance` writes this page from what it found. [`bench/`](../bench/README.md) says what each
figure is and how it is measured. A packet of `frontage.p4` is one of a download through cclb4, over TCP or QUIC: two of three have
1,500 bytes, and each passes some 14 tables. The packets of the router and of the filter are the shortest that Ethernet allows.
"""

WIRED = """Veth to veth, the highest rate at which fewer than 1 packet in 1,000 is lost. The bare forwarder copies from ring to ring and
does nothing else: what the kernel alone makes of that traffic, beside a sender on the same machine.
"""

OVERLOAD = """Veth to veth, what comes through when as many are sent as can be. BMv2's receive ring holds few packets, so that it loses some
at low rates whenever the machine does anything else: where its rate above is far below this one, this one says more.
"""

CORES = """For a second of one core's time: first softswitch's pipeline as a library, then both switches in the runs above, all of their own
code, receiving and sending included, and the kernel left out. BMv2 has no other figure in process: its threads and the queues
between them are all there is.
"""

SIMULATOR = """Packets that [the simulator](../experiments/simulator/README.md) takes through P4 programs for a second of one core's time;
hosts, queues and events are in that time, too. In the paper's testbed each packet passes `frontage.p4` in three switches; the plain
routers run `router.p4`. ns-3 gets the same routers, links, queues and flows, and what comes of them differs as much as two TCPs do.
Debian's build of it has log statements, switched off; without them it is 1.4 times as fast.
"""

LOOKUPS = """Lookups a second of one core's time, by the number of entries; insertions and deletions a second at the largest number; bytes
an entry, of a million. `scattered` is ternary with random masks.
"""


def programs(rows: Rows) -> str:
    wired, cores = [], []
    for key, title in PROGRAMS.items():
        bare = figure(rows, f"veth_{key}_pps_bare", "peer_value")
        share = figure(rows, f"veth_{key}_pps_bare", "ratio")
        percent = "-" if share is None else f"{100 * share:.0f} %"
        wired.append(f"| {title} | {compared(rows, f'veth_{key}_pps')} | {number(bare)} | {percent} |")
        alone = number(figure(rows, IN_PROCESS[key]))
        cores.append(f"| {title} | {alone} | {compared(rows, f'veth_{key}_pps_per_core')} |")
    overload = [f"| {title} | {compared(rows, f'veth_{key}_pps_overload')} |" for key, title in PROGRAMS.items()]
    peers = sorted({row["peer"] for row in rows.values() if (row["peer"] or "").startswith("BMv2")})
    peer = (
        f"The peer is {'; '.join(peers)}."
        if peers
        else "BMv2 was not there to compare with, so these are softswitch's figures alone."
    )
    return "\n".join(
        [
            "## Packets a second",
            "",
            f"{peer}\n",
            WIRED,
            table("| program | softswitch | BMv2 | ratio | bare forwarder | softswitch's share of it |", wired),
            OVERLOAD,
            table("| program | softswitch | BMv2 | ratio |", overload),
            CORES,
            table("| program | pipeline | softswitch | BMv2 | ratio |", cores),
        ]
    )


def simulator(rows: Rows) -> str:
    alone = {f"the paper's testbed, {name.upper()}": f"simulator_testbed_{name}_pps" for name in ("tcp", "quic")}
    peer = rows.get("simulator_router_pps", {}).get("peer") or "ns-3"
    fct = [figure(rows, "simulator_router_mean_fct", whose) for whose in ("value", "peer_value")]
    times = " | ".join("-" if value is None else f"{value / 1000:.3g} ms" for value in fct)
    peaks = [figure(rows, f"simulator_memory_{name}") for name in ("in_turn", "at_once")]
    in_turn, at_once = ("-" if peak is None else f"{peak:,.0f} MB" for peak in peaks)
    return "\n".join(
        [
            "## Simulation",
            "",
            SIMULATOR,
            table(
                f"| packets/s | simulator | {peer} | ratio |",
                [
                    *(f"| {title} | {compared(rows, name)} |" for title, name in alone.items()),
                    f"| plain routers | {compared(rows, 'simulator_router_pps')} |",
                    f"| their packets in all | {compared(rows, 'simulator_router_packets')} |",
                    f"| their flows' mean completion time | {times} | {ratio(figure(rows, 'simulator_router_mean_fct', 'ratio'))} |",
                ],
            ),
            f"The most memory that a run takes with a million flows: {in_turn} where few are at a time, {at_once} where all are.\n",
        ]
    )


def growth(rows: Rows) -> str:
    sizes = sorted({size for sizes in KINDS.values() for size in sizes})
    lines = []
    for kind, measured in KINDS.items():
        cells = [number(figure(rows, f"table_{kind}_{size}_lookups")) for size in sizes]
        changes = [number(figure(rows, f"table_{kind}_{measured[-1]}_{what}")) for what in ("insertions", "deletions")]
        memory = figure(rows, f"memory_{kind}_per_million_entries")
        bytes_each = "-" if memory is None else f"{memory * (1 << 20) / 1e6:.0f}"
        lines.append(f"| {kind} | {' | '.join([*cells, *changes, bytes_each])} |")
    header = "".join(f" {size:,} |" for size in sizes)
    filters = [f"{size:,} rules {number(figure(rows, f'pipeline_acl_{size}_pps'))}" for size in (100, 1_000, 10_000)]
    scattered = number(figure(rows, "pipeline_acl_random_masks_10000_pps"))
    return "\n".join(
        [
            "## Tables",
            "",
            LOOKUPS,
            table(f"| table |{header} insertions | deletions | bytes |", lines),
            f"![Lookups a second by number of entries]({PLOT})",
            "",
            f"The whole packet filter in process, packets a second: {', '.join(filters)}, and 10,000 with random masks {scattered}.",
            "",
            "Over P4Runtime, entries a second into an exact table, 2,000 a request:",
            "",
            table("| | softswitch | BMv2 | ratio |", [f"| writes | {compared(rows, 'table_writes_per_second')} |"]),
        ]
    )


def drawn(rows: Rows) -> str:
    """The growth of lookups with the number of entries, as SVG."""
    lines = []
    for style, (kind, sizes) in enumerate(KINDS.items()):
        points = [(float(size), figure(rows, f"table_{kind}_{size}_lookups")) for size in sizes]
        lines.append(Line(kind, style, [(size, value / 1e6) for size, value in points if value]))
    values = [value for line in lines for _, value in line.points]
    if not values:
        sys.exit("no table has been measured: run `make bench ONLY=tables`")
    x = Axis("entries", 10, 1_000_000, logarithmic=True)
    y = Axis("million lookups/s", min(values) / 1.5, max(values) * 1.5, logarithmic=True)
    svg = plot("Lookups a second by number of entries", x, y, lines)
    names = "".join(f'<text class="t{line.style}" x="{60 + 70 * line.style}" y="22">{line.label}</text>' for line in lines)
    opening, rest = svg.split(">", 1)
    return f'{opening} xmlns="http://www.w3.org/2000/svg"><style>{STYLE}</style>{rest.removesuffix("</svg>")}{names}</svg>\n'


def read(path: Path) -> Any:
    if not path.exists():
        sys.exit(f"{path} is missing: `make bench` writes it")
    return json.loads(path.read_text())


def main() -> None:
    rows: Rows = {row["name"]: row for row in read(WORK / "result.json")}
    machine = read(WORK / "machine.json")
    on = "Measured on {cores} cores of {cpu}, {memory}, {system}; the machine's load was {load} when it began.\n".format(**machine)
    (DOCS / "performance.md").write_text(
        "\n".join([INTRODUCTION, on, programs(rows), quic(rows), table1(rows), simulator(rows), growth(rows)]).rstrip() + "\n"
    )
    (DOCS / PLOT).write_text(drawn(rows))


if __name__ == "__main__":
    main()
