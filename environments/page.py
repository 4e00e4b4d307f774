# SPDX-License-Identifier: Apache-2.0
"""Writes docs/environments.md from the results."""

from __future__ import annotations

from typing import Any

from catalogue import ENVIRONMENTS, ROWS
from results import Results
from toolsets import ROOT

PAGE = ROOT / "docs" / "environments.md"


def cell(outcome: dict[str, Any] | None) -> str:
    """Return a cell: that the row passes, or the reason why not."""
    if outcome is None:
        return "not run"
    return "passes" if outcome["passed"] else f"fails: {outcome['reason'].replace('|', '/')}"


def summary(results: Results) -> str:
    """Return how many rows pass where."""
    outcomes = [results.rows[row.name] for row in ROWS if row.name in results.rows]
    parts = []
    for key, title in (("softswitch", "softswitch"), ("bmv2", "p4c and BMv2")):
        seen = [outcome[key] for outcome in outcomes if key in outcome]
        if seen:
            parts.append(f"{sum(outcome['passed'] for outcome in seen)} of {len(seen)} rows pass on {title}")
    return " and ".join(parts) + "." if parts else "No row has run."


def text(results: Results) -> str:
    """Return the page."""
    lines = [
        "# Environments",
        "",
        "This page shows which exercises of the P4 community's environments run unmodified on softswitch.",
        "Teachers and students need it, and everyone who moves from BMv2.",
        "`make environments` runs the exercises and writes this page ([how](../environments/README.md)).",
        "",
        summary(results),
        "",
    ]
    if versions := results.versions.get("bmv2"):
        lines += [f"The last column shows the same row with p4c {versions[0]} and BMv2 {versions[1]}.", ""]
    for environment in ENVIRONMENTS:
        rows = [row for row in ROWS if row.environment == environment.key and row.name in results.rows]
        if not rows:
            continue
        commit = results.checkouts.get(environment.key, "of unknown commit")
        lines += [
            f"## {environment.key}",
            "",
            f"Repository: [{environment.repository}](https://github.com/{environment.repository}), commit {commit}.",
            "",
            "| exercise | check | softswitch | p4c and BMv2 |",
            "| --- | --- | --- | --- |",
        ]
        for row in rows:
            outcomes = results.rows[row.name]
            exercise = row.name.removeprefix(f"{environment.key}/")
            lines.append(f"| {exercise} | {row.check} | {cell(outcomes.get('softswitch'))} | {cell(outcomes.get('bmv2'))} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def write(results: Results) -> None:
    PAGE.write_text(text(results))
