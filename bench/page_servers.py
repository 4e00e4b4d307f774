"""The sections of docs/performance.md on servers."""

from __future__ import annotations

from cells import Rows, compared, figure, microseconds, number, table
from http3 import SIZES

KINDS_OF_PACKET = """Each kind of packet of `frontage.p4` alone, in process, for a second of one core's time; QUIC over IPv6, TCP over IPv4.
"""

KINDS_BY_TITLE = {
    "TCP: acknowledgment of a client, to its server": "pipeline_frontage_pps_up",
    "TCP: data of a server, dynamic cookie to static": "pipeline_frontage_pps_down",
    "TCP: new connection": "pipeline_frontage_pps_syn",
    "QUIC: from a client to a cookie address": "pipeline_quic_pps_up_address",
    "QUIC: from a client to the VIP, by connection id": "pipeline_quic_pps_up_id",
    "QUIC: data of a server, dynamic cookie to VIP or static": "pipeline_quic_pps_down",
    "QUIC: first Initial of a connection": "pipeline_quic_pps_initial",
}

SIGNALS = """What cookies cost a QUIC server, `frontage-cclb7-quic`: core time, its kernel's included, for each packet that a client gets,
with `[cookie]` and without, in turns; `more` is what the same downloads take in addition, the median of the rounds and its quartiles.
"""

SERVERS = """Downloads over HTTP/3 for a second of one core's time, the server's kernel included, with `[cookie]`, and of nginx:
"""

TABLE1 = """CloudCookie's Table I: per cent of the server's core, in samples of a second, while it answers open-loop arrivals of web-search
objects at about a fifth of the core. `kernel` is all the time in which the core neither idled nor was in user space: eBPF programs and
the network's softirqs are in it. The paper's machines were others, so it is the difference between columns that compares. Over TCP the
server is Debian's nginx, as it comes or with our module and the eBPF agent; once with trains of segments, as a card with TSO takes them,
and once without, where each segment passes the agent by itself. Over QUIC it is `frontage-cclb7-quic` without `[cookie]` and with it.
"""

PUBLISHED = {
    "mean": {"user": (0.4, 6.1, 6.6), "kernel": (0.4, 15.7, 16.6)},
    "median": {"user": (0.0, 6.3, 6.6), "kernel": (0.0, 15.8, 16.9)},
    "p99": {"user": (4.0, 7.7, 8.4), "kernel": (2.4, 16.7, 18.4)},
}
"""Table I (section V-E): idle, vanilla L7 load balancer, CCLB7. The paper's totals are sums, those of percentiles, too."""

BALANCERS = {"nginx": "tcp", "nginx, no TSO": "tcp_without_tso", "QUIC": "quic"}


def table1(rows: Rows) -> str:
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
    offered = [f"{number(figure(rows, f'table1_{name}_offered'))} Mbit/s ({title})" for title, name in BALANCERS.items()]
    columns = " | ".join(f"{title} | with CCLB7" for title in BALANCERS)
    return "\n".join(
        [
            "## What CCLB7 costs a server",
            "",
            TABLE1,
            table(f"| | paper: idle | vanilla | CCLB7 | idle | {columns} |", lines),
            f"Offered: {', '.join(offered)}.\n",
        ]
    )


def quic(rows: Rows) -> str:
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
    own, tail = (number(figure(rows, f"quic_signals_own_{which}")) for which in ("median", "p99"))
    peer = rows.get("quic_server_1kB_per_core", {}).get("peer") or "nginx"
    return "\n".join(
        [
            "## QUIC",
            "",
            KINDS_OF_PACKET,
            table("| kind | packets/s |", kinds),
            SIGNALS,
            table("| object | with | without | more |", costs),
            f"The signals' own code, on 100 connections in turn: {own} ns a packet (median), {tail} ns (99th percentile).\n",
            SERVERS,
            table(f"| object | frontage-cclb7-quic | {peer} | ratio |", served),
        ]
    )
