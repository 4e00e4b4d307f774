# SPDX-License-Identifier: Apache-2.0
"""Writes docs/clients.md from build/clients/result.json.

Example: clients/page.py
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from catalogue import BUILD, ROOT
from frontage_testbed.reporting.templates import PageTemplate, join

PAGE = ROOT / "docs" / "clients.md"
RESULT = BUILD / "result.json"
Row = dict[str, Any]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown, all of whose columns are aligned to the left."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def span(values: Iterable[int]) -> str:
    """Return the value of several runs: one number, or minimum and maximum."""
    low, *_, high = sorted(values) * 2
    return str(low) if low == high else f"{low} to {high}"


def steering(run: Row) -> dict[str, int]:
    """Return the packets after the handshake, by how the switch found their server."""
    names = {"cookie": "retrieved-address", "ID": "retrieved-cid"}
    return {how: run["steering"].get(counter, 0) for how, counter in names.items()}


def seen(row: Row) -> list[str]:
    """Return the cells of what the network observed."""
    run = row["runs"]["undisturbed"]
    openings = [other["opening"] for other in row["runs"].values() if other["opening"]]
    if not openings:
        return ["nothing", "-", "-", "-", "-"]
    flight, size, theirs, own = (span(o[key] for o in openings) for key in ("datagrams", "size", "destination_id", "source_id"))
    addresses = [name for name, is_there in (("VIP", run["vip"]), ("cookie", run["cookies"])) if is_there]
    addresses += [f"**{address}**" for address in run["unexpected"]]
    return [
        f"{flight} x {size}",
        f"{theirs}; {own}",
        "taken" if run["cookies"] else "not taken",
        ", ".join(f"{how} {count}" for how, count in steering(run).items() if count),
        ", ".join(addresses),
    ]


def outcome(run: Row | None) -> str:
    """Return the outcome of a download; "-" without a download."""
    if run is None:
        return "-"
    if run["whole"]:
        return "whole"
    return "stalls" if run["status"] is None else "breaks off"


def disturbed(run: Row) -> str:
    """Return the outcome of a download that was to be disturbed."""
    return outcome(run) if run["disturbed"] else "ended too early"


def migrating(row: Row) -> str:
    """Return the outcome of a download during which the client was to migrate."""
    run = row["runs"].get("migrating")
    if run is None:
        return "no option"
    return f"{outcome(run) if run['clients'] > 1 else 'does not migrate'}, by `{row['migrate']}`"


def kept(row: Row) -> list[str]:
    """Return the cells of the outcomes under each disturbance."""
    runs = row["runs"]
    return [
        outcome(runs["undisturbed"]),
        disturbed(runs["rebound"]),
        disturbed(runs["readdressed"]),
        outcome(runs.get("unreachable")),
        migrating(row),
    ]


def handed(row: Row) -> list[str]:
    """Return the cells of the download from real servers."""
    run = row.get("handed")
    if run is None:
        return ["-", "-"]
    both = run["real_servers"] + run["balancer"]
    return [outcome(run), f"{run['real_servers'] / both:.0%}" if both else "-"]


def text(rows: dict[str, Row]) -> str:
    """Return the page as Markdown. `rows` are results by client."""
    here = {name: row for name, row in rows.items() if "runs" in row}
    missing = [[name, f"not installed: `{row['install']}`"] for name, row in rows.items() if "runs" not in row]

    def part(head: Sequence[str], cells: Callable[[Row], list[str]]) -> str:
        width = len(head) + 2
        lines = [[name, row["version"], *cells(row)] for name, row in here.items()]
        lines += [[*cell, *["-"] * (width - len(cell))] for cell in missing]
        return table(["client", "version", *head], lines)

    template = PageTemplate("clients")
    return join(
        [
            template.section("introduction"),
            template.section("seen", table=part(["first flight", "IDs", "preferred address", "found by", "addresses"], seen)),
            template.section("kept", table=part(["undisturbed", "NAT", "address", "no cookies", "migration"], kept)),
            template.section("handed", table=part(["download", "from real servers"], handed)),
            template.section("multipath"),
        ]
    )


def short_table(rows: dict[str, Row]) -> str:
    """Return one table of what the network observed and of the downloads' outcomes. `rows` are results by client."""
    head = ["client", "version", "found by", "addresses", "undisturbed", "NAT", "address", "no cookies", "migration"]
    here = {name: row for name, row in rows.items() if "runs" in row}
    return table(head, [[name, row["version"], *seen(row)[3:], *kept(row)] for name, row in here.items()])


def write() -> None:
    """Write the page."""
    if not RESULT.exists():
        sys.exit(f"{RESULT}: file not found: run `make clients`")
    PAGE.write_text(text(json.loads(RESULT.read_text())))
    print(PAGE)


if __name__ == "__main__":
    write()
