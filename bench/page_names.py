# SPDX-License-Identifier: Apache-2.0
"""Sections of docs/performance.md about dispatcher and QuicSocks proxy."""

from __future__ import annotations

from cells import Rows, figure, milliseconds, number, table
from frontage_testbed.reporting.templates import PageTemplate

TEMPLATE = PageTemplate("performance")

FLIGHTS = {
    "flight of one packet": "dispatcher_one_packet_flights",
    "flight of two packets": "dispatcher_two_packet_flights",
    "packets one by one, with the kernel's work": "dispatcher_sockets_singly",
    "packets in trains, with the kernel's work": "dispatcher_sockets_trains",
}
ARRIVALS = {"at random times": "dispatcher_added_latency", "at the same moment": "dispatcher_at_once"}
HANDSHAKES = {"new name": "", "name in the proxy's cache, and client that knows the address": "_known"}


def dispatcher(rows: Rows) -> str:
    """Return the section on the dispatcher; empty if it was not measured."""
    if "dispatcher_added_latency_p50" not in rows:
        return ""
    added = []
    for title, name in ARRIVALS.items():
        cells = [milliseconds(figure(rows, f"{name}_{percentile}")) for percentile in ("p50", "p99")]
        added.append(f"| {title} | {' | '.join(cells)} |")
    costs = [f"| {title} | {number(figure(rows, name))} |" for title, name in FLIGHTS.items()]
    return TEMPLATE.section(
        "dispatcher",
        added=table("| 1,000 handshakes start | median | 99th percentile |", added),
        costs=table("| work | packets/s |", costs),
    )


def quicsocks(rows: Rows) -> str:
    """Return the section on the QuicSocks proxy; empty if it was not measured."""
    if "quicsocks_added_p50" not in rows:
        return ""
    lines = []
    for title, suffix in HANDSHAKES.items():
        name = f"quicsocks_handshake_p50{suffix}"
        times = [figure(rows, name), figure(rows, name, "peer_value"), figure(rows, f"quicsocks_added_p50{suffix}")]
        lines.append(f"| {title} | {' | '.join(map(milliseconds, times))} |")
    return TEMPLATE.section("quicsocks", table=table("| | with the proxy | without | additional |", lines))
