# SPDX-License-Identifier: Apache-2.0
"""Asks the leading controller about the placement, and prints its answer."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.table import Table

from frontage_records.jetstream.connection import ATTEMPT_TIMEOUT, Connection
from frontage_records.placement.placer import EXPLAIN


async def ask(connection: Connection, guid: str | None, limit: int) -> dict[str, Any] | None:
    """Return the leader's document (`view.summary`); None if no leader answers."""
    question = json.dumps({"guid": guid, "limit": limit}).encode()
    try:
        data = await connection.request(EXPLAIN, question, ATTEMPT_TIMEOUT)
    except TimeoutError:
        return None
    found: dict[str, Any] | None = None if data is None else json.loads(data)
    return found


def show(found: dict[str, Any], out: Console) -> None:
    """Print the document."""

    def line(text: str) -> None:
        out.print(text, highlight=False, markup=False, soft_wrap=True)

    if not found["records"]:
        line(f"no decision yet: {found['error']}")
        return
    beta = "unbounded" if found["beta"] is None else f"{found['beta']:.3g}"
    load = found["load"]
    line(
        f"epoch {found['epoch']}: {found['counted']} records with demand, {found['groups']} placement groups; beta {beta}; "
        f"{load['reads']:.1f} reads and {load['updates']:.1f} replica updates of at most {load['budget']:.0f} per second"
    )
    if found["error"]:
        line(f"no decision in the last epoch: {found['error']}")
    if load["shortfall"]:
        line(f"demand exceeds mu times the capacity by {load['shortfall']:.0f} per second: each record has min_replicas")
    done = ", ".join(f"{number} {result}" for result, number in sorted(found["moves"].items())) or "none"
    line(f"moves so far: {done}; {found['waiting']} waiting or in progress; {found['bytes_moved']} bytes copied")
    capacity = Table("site", "requests per second", box=None, title="\nmeasured capacity", title_justify="left")
    for site, value in found["capacity"].items():
        capacity.add_row(site, f"{value:.0f}" if value else "silent")
    out.print(capacity)
    records = Table(
        "record", "reads/s", "writes/s", "demand by site", "sites", "wanted", "replicas", "gain", "state",
        box=None, title="\nrecords", title_justify="left",
    )  # fmt: skip
    for one in found["records"]:
        demand = " ".join(f"{row['region']}:{100 * row['share']:.0f}%" for row in one["demand"])
        wanted = " ".join(map(str, one["group"]))
        gain = "-" if one["gain_us"] is None else f"{one['gain_us'] / 1000:.1f} ms"
        state = one["state"] if not one["requests_missing"] else f"{one['state']}: {one['requests_missing']}"
        rates = f"{one['reads_per_second']:.1f}", f"{one['writes_per_second']:.1f}"
        sites = " ".join(map(str, one["active"]))
        records.add_row(one["guid"], *rates, demand, sites, wanted, f"{one['replicas']} ({one['bound']})", gain, state)
    out.print(records)
