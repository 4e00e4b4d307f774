# SPDX-License-Identifier: Apache-2.0
"""Draws the hops of one visit as a sequence diagram: a column for each machine, and a row for each hop."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .addresses import BACKBONE_PORT, CLIENT_PORT
from .trace import Hop

COLUMN, ROW, LEFT, TOP = 104, 44, 70, 40
"""Pixels between two columns and two rows, left of the columns, and above the rows."""
CLIENT, DISPATCHER, BALANCERS, REAL_SERVERS = "client", "dispatcher", "balancers", "real servers"
DECIDING = ("sid_site", "steering", "dispatch", "mapping", "tunnel", "site", "server", "sender", "scheduler", "region")
"""Parts of the names of tables whose action the diagram shows, the most important ones first."""


def columns(hops: Sequence[Hop], entry: str, best: str) -> list[tuple[str, str]]:
    """Return the machines in the order of the columns, as pairs of site and name; the client does not belong to a site."""
    switches = {site: sorted({hop.switch for hop in hops if hop.site == site}) for site in (entry, best)}
    found = [("", CLIENT), *((entry, switch) for switch in switches[entry]), (entry, DISPATCHER)]
    if best != entry:
        found += [*((best, switch) for switch in switches[best]), (best, DISPATCHER)]
    return [*found, (best, BALANCERS), (best, REAL_SERVERS)]


def ends(hop: Hop, entry: str, best: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the machine from which a packet came to the switch, and the one to which the switch sent it."""
    switches = {site: (site, "switches") for site in (entry, best)}
    other = switches[entry if hop.site == best else best]
    match hop.sender:
        case "client":
            came = ("", CLIENT)
        case "dispatcher":
            came = (hop.site, DISPATCHER)
        case "entry site":
            came = other
        case "real server":
            came = (best, REAL_SERVERS)
        case _:
            came = (best, BALANCERS)
    if CLIENT_PORT in hop.left_by:
        return came, ("", CLIENT)
    if BACKBONE_PORT in hop.left_by:
        return came, other
    if hop.kind == "first flight" or (hop.kind == "from the entry site" and reaches_dispatcher(hop)):
        return came, (hop.site, DISPATCHER)
    return came, (best, BALANCERS)


def reaches_dispatcher(hop: Hop) -> bool:
    """Return whether the switch passed the packet to a dispatcher."""
    return any("dispatcher" in action or "dispatcher" in table for table, action in hop.decisions)


def decision(hop: Hop) -> str:
    """Return the action that decided where the packet went, as `table: action`."""
    for part in DECIDING:
        for table, action in hop.decisions:
            if part in table.lower():
                return f"{table}: {action.partition('(')[0]}"
    return ""


def draw(hops: Sequence[Hop], entry: str, best: str) -> str:
    """Return the diagram as SVG. `entry` and `best` are the locations of the sites."""
    lanes = columns(hops, entry, best)
    x = {lane: LEFT + COLUMN // 2 + COLUMN * number for number, lane in enumerate(lanes)}
    for site in (entry, best):
        own = [at for (where, name), at in x.items() if where == site and name.startswith("edge")]
        x[site, "switches"] = sum(own) // max(len(own), 1)
    width, height = LEFT + COLUMN * len(lanes), TOP + ROW * len(hops) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="10">',
        "<title>The hops of one visit</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8Z" fill="#0550ae"/></marker></defs>',
    ]
    for site, name in lanes:
        at = x[site, name]
        parts.append(f'<text x="{at}" y="14" text-anchor="middle" fill="#57606a">{escape(site)}</text>')
        parts.append(f'<text x="{at}" y="28" text-anchor="middle" font-weight="bold">{escape(name)}</text>')
        parts.append(f'<path d="M{at} {TOP - 6}V{height - 6}" stroke="#d0d7de"/>')
    for row, hop in enumerate(hops):
        y = TOP + ROW * row + 22
        came, went = (x[end] for end in ends(hop, entry, best))
        switch = x[hop.site, hop.switch]
        parts.append(f'<text x="4" y="{y + 3}" fill="#57606a">{hop.milliseconds:.1f} ms</text>')
        parts.append(f'<path d="M{came} {y}H{switch}" stroke="#0550ae" fill="none"/>')
        parts.append(f'<path d="M{switch} {y}H{went}" stroke="#0550ae" fill="none" marker-end="url(#head)"/>')
        parts.append(f'<circle cx="{switch}" cy="{y}" r="4" fill="#0550ae"/>')
        label = min(came, switch, went) + 6
        parts.append(f'<text x="{label}" y="{y - 6}">{escape(hop.kind)} ({hop.length} B)</text>')
        parts.append(f'<text x="{label}" y="{y + 14}" fill="#57606a" font-size="9">{escape(decision(hop))}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
