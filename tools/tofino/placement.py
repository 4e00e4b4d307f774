# SPDX-License-Identifier: Apache-2.0
"""The placement of the profiles on the chip by the open back end: how far it gets, and what it uses."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, TypeAlias

from tofino import FOLDER, STAGES, backend, page, save
from tofino.resources import UNITS, usage

GOLDEN = FOLDER / "placement.json"
SHOWN_ERROR = 160
"""Characters of an error on the page."""

Placement: TypeAlias = dict[str, Any]
"""The result for a profile: `pass` and `error` of a refusal, or what `usage` returns."""


def place(command: list[str], profile: str) -> Placement:
    """Run the back end on a profile, which takes minutes."""
    with tempfile.TemporaryDirectory() as folder:
        refusal = backend.run(command, profile, Path(folder))
        if refusal is not None:
            return {"pass": refusal.last_pass, "error": refusal.error}
        return fitting(profile, usage(Path(folder)))


def fitting(profile: str, placed: Placement) -> Placement:
    """Return a result, or a refusal if it has more stages than the chip, with which the back end still succeeds."""
    available = STAGES[profile]
    excess = [f"{number} stages in {gress}" for gress, number in placed["stages"].items() if number > available]
    if not excess:
        return placed
    return {"pass": "TablePlacement", "error": f"the result has {' and '.join(excess)}, but the chip has {available}"}


def write(command: list[str]) -> None:
    """Place the profiles one after the other; write the result to the page and to placement.json."""
    profiles = {profile: place(command, profile) for profile in STAGES}
    save(GOLDEN, profiles)
    page.write("placement", block(profiles))


def block(profiles: dict[str, Placement]) -> list[str]:
    """Return the lines of the page: the result of each profile, and tables of what the placed ones use."""
    results = [(f"`{profile}`", result(profile, placement)) for profile, placement in profiles.items()]
    lines = page.table(("profile", "result"), *results)
    for profile, placement in profiles.items():
        if "units" in placement:
            lines += ["", *details(profile, placement)]
    return lines


def result(profile: str, placement: Placement) -> str:
    """Return a cell that says how far a profile gets."""
    if "error" in placement:
        error = placement["error"].replace("|", "\\|")
        shown = error if len(error) <= SHOWN_ERROR else f"{error[:SHOWN_ERROR].rsplit(' ', 1)[0]} ..."
        return f"refused in the pass {placement['pass']}: {shown}"
    stages = ", ".join(f"{gress} {number}" for gress, number in placement["stages"].items())
    return f"placed; stages of {STAGES[profile]}: {stages}"


def details(profile: str, placement: Placement) -> list[str]:
    """Return the tables of containers and units of a placed profile."""
    containers = placement["containers"]
    kinds = list(containers["chip"])
    units = placement["units"]
    return [
        f"Containers of `{profile}`:",
        "",
        *page.table(("gress", *kinds), *((gress, *(counts[kind] for kind in kinds)) for gress, counts in containers.items())),
        "",
        f"Units of `{profile}`:",
        "",
        *page.table(
            ("control", *UNITS),
            *((f"`{control}`", *(counts[kind] for kind in UNITS)) for control, counts in placement["controls"].items()),
            ("all", *(units[kind]["used"] for kind in UNITS)),
            ("chip", *(units[kind]["of"] for kind in UNITS)),
        ),
    ]
