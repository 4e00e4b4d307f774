# SPDX-License-Identifier: Apache-2.0
"""Sections of docs/performance.md about servers."""

from __future__ import annotations

from cells import Rows, against, compared, figure, microseconds, number, table
from frontage_testbed.reporting.templates import PageTemplate
from http3 import SIZES

TEMPLATE = PageTemplate("performance")

KINDS_BY_TITLE = {
    "TCP: acknowledgment from a client": "pipeline_frontage_pps_up",
    "TCP: data from a server, dynamic cookie to static": "pipeline_frontage_pps_down",
    "TCP: new connection": "pipeline_frontage_pps_syn",
    "QUIC: from a client to a cookie address": "pipeline_quic_pps_up_address",
    "QUIC: from a client to the VIP, by connection id": "pipeline_quic_pps_up_id",
    "QUIC: data from a server, dynamic cookie to VIP or static": "pipeline_quic_pps_down",
    "QUIC: first Initial of a connection": "pipeline_quic_pps_initial",
}

PUBLISHED = {
    "mean": {"user": (0.4, 6.1, 6.6), "kernel": (0.4, 15.7, 16.6)},
    "median": {"user": (0.0, 6.3, 6.6), "kernel": (0.0, 15.8, 16.9)},
    "p99": {"user": (4.0, 7.7, 8.4), "kernel": (2.4, 16.7, 18.4)},
}
"""Table I (section V-E): idle, vanilla L7 load balancer, CCLB7. The paper's totals are sums, also for percentiles."""

CONGESTION = {"cubic": "CUBIC", "bbr": "BBR"}
BALANCERS = {"nginx": "tcp", "nginx, no TSO": "tcp_without_tso", "QUIC": "quic"}


def table1(rows: Rows) -> str:
    """Return the section on the cost of CCLB7; empty if it was not measured."""
    if not any(name.startswith("table1_") for name in rows):
        return ""
    lines = []
    for statistic, parts in PUBLISHED.items():
        total = tuple(round(sum(both), 1) for both in zip(*parts.values(), strict=True))
        for part, paper in {**parts, "total": total}.items():
            idle = figure(rows, f"table1_idle_{statistic}_{part}")
            pairs = [
                [figure(rows, f"table1_{name}_{statistic}_{part}", whose) for whose in ("peer_value", "value")]
                for name in BALANCERS.values()
            ]
            cells = [
                *map(str, paper),
                *("-" if value is None else f"{value:.1f}" for value in (idle, *(value for pair in pairs for value in pair))),
            ]
            lines.append(f"| {statistic}, {part} | {' | '.join(cells)} |")
    offered = [f"{figure(rows, f'table1_{name}_offered') or 0:,.0f} Mbit/s ({title})" for title, name in BALANCERS.items()]
    columns = " | ".join(f"{title} | with CCLB7" for title in BALANCERS)
    return TEMPLATE.section(
        "table1",
        table=table(f"| | paper: idle | vanilla | CCLB7 | idle | {columns} |", lines),
        offered=", ".join(offered),
    )


def quic(rows: Rows) -> str:
    """Return the section on QUIC."""
    kinds = [f"| {title} | {number(figure(rows, name))} |" for title, name in KINDS_BY_TITLE.items()]
    costs, served = [], []
    for size in SIZES:
        key = size.replace(" ", "")
        with_cookie, without = (
            microseconds(figure(rows, f"quic_signals_{key}_core_time", whose)) for whose in ("value", "peer_value")
        )
        more, low, high = (figure(rows, f"quic_signals_{key}_overhead{end}") for end in ("", "_low", "_high"))
        spread = "-" if more is None else f"{more:.1f} % ({low:.1f} to {high:.1f})"
        costs.append(f"| {size} | {with_cookie} | {without} | {spread} |")
        served.append(f"| {size} | {compared(rows, f'quic_server_{key}_per_core')} |")
    lossy = [f"| {title} | {compared(rows, f'quic_server_rate_with_loss_{key}')} |" for key, title in CONGESTION.items()]
    own, tail = (number(figure(rows, f"quic_signals_own_{which}")) for which in ("median", "p99"))
    peer = rows.get("quic_server_1kB_per_core", {}).get("peer") or "nginx"
    return TEMPLATE.section(
        "quic",
        kinds=table("| kind | packets/s |", kinds),
        costs=table("| object | with | without | additional |", costs),
        median=own,
        tail=tail,
        served=table(f"| object | frontage-cclb7-quic | {peer} | ratio |", served),
        lossy=table(f"| congestion control | frontage-cclb7-quic | {peer} | ratio |", lossy),
    )


def lsquic(rows: Rows) -> str:
    """Return the comparison with lsquic, a part of the section on QUIC; empty if it was not measured."""
    keys = [size.replace(" ", "") for size in SIZES]
    if f"quic_lsquic_{keys[0]}_per_core_vs_cclb7" not in rows:
        return ""
    served = []
    for size, key in zip(SIZES, keys, strict=True):
        name = f"quic_lsquic_{key}_per_core_vs"
        served.append(f"| {size} | {compared(rows, f'{name}_cclb7')} | {against(rows, f'{name}_nginx')} |")
    peer = rows.get(f"quic_lsquic_{keys[0]}_per_core_vs_nginx", {}).get("peer") or "nginx"
    return TEMPLATE.section(
        "lsquic",
        overheads=", ".join(number(figure(rows, f"quic_lsquic_{key}_signals_overhead")) for key in keys),
        served=table(f"| object | frontage-lsquic | frontage-cclb7-quic | ratio | {peer} | ratio |", served),
    )
