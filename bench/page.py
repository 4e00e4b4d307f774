# SPDX-License-Identifier: Apache-2.0
"""Write docs/performance.md and its plot from the benchmarks' results in build/bench.

Example: bench/page.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from cells import Rows, compared, figure, milliseconds, number, ratio, table
from frontage_testbed.reporting.figures import save
from frontage_testbed.reporting.plots import Axis, Line
from frontage_testbed.reporting.templates import PageTemplate, join
from growth import CONNECTIONS, SIZES
from page_names import dispatcher, quicsocks
from page_servers import lsquic, quic, table1
from paths import ROOT, WORK
from table_writes import DELAYED_RATE
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
TEMPLATE = PageTemplate("performance")


def programs(rows: Rows) -> str:
    """Return the section on packets per second."""
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
    return TEMPLATE.section(
        "programs",
        peer=TEMPLATE.section("peer", peers="; ".join(peers)) if peers else TEMPLATE.section("no-peer"),
        wired=table("| program | softswitch | BMv2 | ratio | bare forwarder | softswitch / bare forwarder |", wired),
        overload=table("| program | softswitch | BMv2 | ratio |", overload),
        core_times=table("| program | pipeline | softswitch | BMv2 | ratio |", cores),
    )


def katran(rows: Rows) -> str:
    """Return the section on katran; empty if it was not measured."""
    ours, theirs = (figure(rows, "katran_acknowledgment_ns", whose) for whose in ("value", "peer_value"))
    if ours is None or theirs is None:
        return ""
    return TEMPLATE.section("katran", ours=f"{ours:,.0f}", theirs=f"{theirs:,.0f}")


def threads(rows: Rows) -> str:
    """Return the section on two threads; empty if it was not measured."""
    if "threads_router_pps" not in rows:
        return ""
    names = {title: f"threads_{IN_PROCESS[key].removeprefix('pipeline_')}" for key, title in PROGRAMS.items()}
    return TEMPLATE.section("threads", pipelines=one_and_two(rows, names))


def two_ports(rows: Rows) -> str:
    """Return the figures of two ports, a part of the section on two threads; empty if they were not measured."""
    if "veth_two_ports_frontage_pps_overload" not in rows:
        return ""
    names = {PROGRAMS[key]: f"veth_two_ports_{key}_pps_overload" for key in ("frontage", "quic")}
    return TEMPLATE.section("two-ports", ports=one_and_two(rows, names))


def one_and_two(rows: Rows, names: dict[str, str]) -> str:
    """Return the table that compares two threads with one, for rows by title."""
    lines = []
    for title, name in names.items():
        one, two = (number(figure(rows, name, whose)) for whose in ("peer_value", "value"))
        lines.append(f"| {title} | {one} | {two} | {ratio(figure(rows, name, 'ratio'))} |")
    return table("| program | one thread | two threads | ratio |", lines)


def simulator(rows: Rows) -> str:
    """Return the section on the simulator."""
    testbeds = {f"the paper's testbed, {name.upper()}": f"simulator_testbed_{name}" for name in ("tcp", "quic")}
    peer = rows.get("simulator_router_pps", {}).get("peer") or "ns-3"
    fct = [figure(rows, "simulator_router_mean_fct", whose) for whose in ("value", "peer_value")]
    times = " | ".join("-" if value is None else f"{value / 1000:.3g} ms" for value in fct)
    peaks = [figure(rows, f"simulator_memory_{name}") for name in ("in_turn", "at_once")]
    in_turn, at_once = ("-" if peak is None else f"{peak:,.0f} MB" for peak in peaks)
    return TEMPLATE.section(
        "simulator",
        table=table(
            f"| packets/s | simulator | {peer} | ratio |",
            [
                *(f"| {title} | {compared(rows, f'{name}_pps')} |" for title, name in testbeds.items()),
                f"| plain routers | {compared(rows, 'simulator_router_pps')} |",
                f"| plain routers, two threads | {compared(rows, 'simulator_router_threads_pps')} |",
                f"| total packets | {compared(rows, 'simulator_router_packets')} |",
                f"| mean flow completion time | {times} | {ratio(figure(rows, 'simulator_router_mean_fct', 'ratio'))} |",
            ],
        ),
        threads=table(
            "| packets/s of real time | one thread | two threads | ratio | two runs at once | ratio |",
            [f"| {title} | {two_threads(rows, name)} |" for title, name in testbeds.items()],
        ),
        in_turn=in_turn,
        at_once=at_once,
    )


def two_threads(rows: Rows, name: str) -> str:
    """Return the cells of two threads and of two runs at once."""
    one = number(figure(rows, f"{name}_threads_pps", "peer_value"))
    pairs = [
        f"{number(figure(rows, f'{name}_{what}_pps'))} | {ratio(figure(rows, f'{name}_{what}_pps', 'ratio'))}"
        for what in ("threads", "at_once")
    ]
    return " | ".join([one, *pairs])


def growth(rows: Rows) -> str:
    """Return the section on tables."""
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
    return TEMPLATE.section(
        "tables",
        table=table(f"| table |{header} insertions | deletions | bytes |", lines),
        filters=", ".join(filters),
        scattered=scattered,
        writes=table("| | softswitch | BMv2 | ratio |", [f"| writes | {compared(rows, 'table_writes_per_second')} |"]),
    )


def write_delay(rows: Rows) -> str:
    """Return the delay of packets beside a writer, a part of the section on tables; empty if it was not measured."""
    if "write_delay_p50" not in rows:
        return ""
    delays = []
    for key, title in {"p50": "median", "p99": "p99", "p9999": "p99.99", "longest": "longest"}.items():
        beside, alone = (figure(rows, f"write_delay_{key}", whose) for whose in ("value", "peer_value"))
        delays.append(f"| {title} | {milliseconds(beside)} | {milliseconds(alone)} |")
    return TEMPLATE.section(
        "write-delay",
        rate=f"{DELAYED_RATE:,}",
        delays=table("| delay | beside the writer | without it |", delays),
    )


def sizes(rows: Rows) -> str:
    """Return the section on the size of sites; empty if it was not measured."""
    if "growth_servers_1_pps" not in rows:
        return ""
    lines = []
    for what, title in {"servers": "servers of one VIP", "vips": "VIPs of 8 servers", "ports": "ports with one VIP each"}.items():
        for count in SIZES[what]:
            name = f"growth_{what}_{count}"
            entries, seconds, memory = (figure(rows, f"{name}_{of}") for of in ("entries", "install", "memory"))
            rate = number(figure(rows, f"{name}_pps"))
            lines.append(f"| {count:,} {title} | {entries:,.0f} | {seconds:.1f} s | {memory:.0f} MB | {rate} |")
    connections = [f"| {count:,} | {number(figure(rows, f'growth_connections_{count}_pps'))} |" for count in CONNECTIONS]
    return TEMPLATE.section(
        "sizes",
        sites=table("| site | entries | until installed | memory | packets/s |", lines),
        connections=table("| connections | packets/s |", connections),
    )


def draw(rows: Rows, path: Path) -> None:
    """Plot the lookup rate against the number of entries."""
    lines = []
    for style, (kind, sizes) in enumerate(KINDS.items()):
        points = [(float(size), figure(rows, f"table_{kind}_{size}_lookups")) for size in sizes]
        lines.append(Line(kind, style, [(size, value / 1e6) for size, value in points if value]))
    values = [value for line in lines for _, value in line.points]
    if not values:
        sys.exit("bench/page.py: no results for tables: run `make bench ONLY=tables`")
    x = Axis("entries", 10, 1_000_000, logarithmic=True)
    y = Axis("million lookups per second", min(values) / 1.5, max(values) * 1.5, logarithmic=True)
    save(path, "Lookups per second by number of entries", x, y, lines, COLOURS)


def read(path: Path) -> Any:
    """Read a JSON file of results; exit if it is missing."""
    if not path.exists():
        sys.exit(f"{path} is missing: run `make bench`")
    return json.loads(path.read_text())


def main() -> None:
    rows: Rows = {row["name"]: row for row in read(WORK / "result.json")}
    machine = read(WORK / "machine.json")
    servers = [quic(rows), lsquic(rows), table1(rows), dispatcher(rows), quicsocks(rows)]
    tables = [growth(rows), write_delay(rows), sizes(rows)]
    sections = [programs(rows), katran(rows), threads(rows), two_ports(rows), *servers, simulator(rows), *tables]
    (DOCS / "performance.md").write_text(join([TEMPLATE.section("introduction", **machine), *sections]))
    draw(rows, DOCS / PLOT)


if __name__ == "__main__":
    main()
