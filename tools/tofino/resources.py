# SPDX-License-Identifier: Apache-2.0
"""Use of the chip by a placed program, from the reports of the open back end."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tofino import ROOT

SOURCES = sorted((file.stem for file in (ROOT / "p4src").rglob("*.p4")), key=len, reverse=True)
"""The names of the program's files, of which one may begin another."""
STATEMENTS = "other statements"
"""Statements outside tables of which the back end does not name the file."""
USERS = ("used_by", "used_by_table", "table_name")
"""The keys of the reports that name a table, a register or a counter."""


@dataclass(frozen=True)
class Unit:
    """A kind of resource of a stage: its group and list in the report, and the numbers whose product is its capacity."""

    group: str
    elements: str
    capacity: tuple[str, ...]


UNITS = {
    "SRAM": Unit("rams", "srams", ("nRows", "nColumns")),
    "map RAM": Unit("map_rams", "maprams", ("nRows", "nUnits")),
    "TCAM": Unit("tcams", "tcams", ("nRows", "nColumns")),
    "hash bits": Unit("hash_bits", "bits", ("nBits", "nFunctions")),
    "hash distribution": Unit("hash_distribution_units", "units", ("nHashIds", "nUnitIds")),
    "stateful ALU": Unit("meter_alus", "meters", ("nAlus",)),
    "gateway": Unit("gateways", "gateways", ("nRows", "nUnits")),
    "logical table": Unit("logical_tables", "ids", ("size",)),
    "instruction": Unit("vliw", "instructions", ("size",)),
}


def usage(folder: Path) -> dict[str, Any]:
    """Return stages, containers and units that the placed program in a folder of the back end uses.

    If it has several pipes, the name of a gress begins with that of its pipe, and units are sums.
    """
    assemblies = sorted(folder.glob("*/*.bfa"))
    used_stages: dict[str, int] = {}
    used_by_gress: dict[str, dict[str, int]] = {}
    every_stage: list[dict[str, Any]] = []
    for assembly in assemblies:
        pipe = f"{assembly.parent.name}." if len(assemblies) > 1 else ""
        logs = assembly.parent / "logs"
        resources = json.loads((logs / "resources.json").read_text())["resources"]
        containers = used_containers(json.loads((logs / "phv.json").read_text())["containers"], resources["phv_containers"])
        chip = containers.pop("chip")
        used_stages |= {pipe + gress: number for gress, number in stages(assembly.read_text()).items()}
        used_by_gress |= {pipe + gress: counts for gress, counts in containers.items()}
        every_stage += resources["mau"]["mau_stages"]
        stages_of_pipe = resources["mau"]["nStages"]
    return {
        "stages": used_stages,
        "containers": used_by_gress | {"chip": chip},
        "units": units({"nStages": stages_of_pipe * len(assemblies), "mau_stages": every_stage}),
        "controls": controls(every_stage),
    }


def stages(assembly: str) -> dict[str, int]:
    """Return the number of stages of each gress, up to the last one that it uses."""
    last: dict[str, int] = {"ingress": 0, "egress": 0}
    for number, gress in re.findall(r"^stage (\d+) (ingress|egress):", assembly, flags=re.M):
        last[gress] = max(last[gress], int(number) + 1)
    return last


def used_containers(containers: list[dict[str, Any]], available: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Return the containers of headers and metadata by type that each gress uses, and those of the chip."""
    counts = Counter((container["gress"], container["container_type"]) for container in containers)
    by_gress = {gress: {kind: counts[gress, kind] for kind in available} for gress in ("ingress", "egress")}
    return by_gress | {"chip": {kind: sum(group["units"] for group in groups) for kind, groups in available.items()}}


def units(mau: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Return the used and available units of the chip by kind."""
    found = {}
    for kind, unit in UNITS.items():
        used = sum(len(stage[unit.group][unit.elements]) for stage in mau["mau_stages"])
        in_stage = math.prod(mau["mau_stages"][0][unit.group][number] for number in unit.capacity)
        found[kind] = {"used": used, "of": in_stage * mau["nStages"]}
    return found


def controls(mau_stages: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Return the units that each control uses by kind. A unit that several controls share counts for each."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for stage in mau_stages:
        for kind, unit in UNITS.items():
            for element in stage[unit.group][unit.elements]:
                for control in {control_of(user) for user in users(element)}:
                    found[control][kind] += 1
    return {control: {kind: counts[kind] for kind in UNITS} for control, counts in sorted(found.items())}


def users(element: Any) -> Iterator[str]:
    """Yield the names of tables, registers and counters in an element of a report."""
    if isinstance(element, list):
        for part in element:
            yield from users(part)
    elif isinstance(element, dict):
        for key, value in element.items():
            if key in USERS:
                yield value
            else:
                yield from users(value)


def control_of(name: str) -> str:
    """Return the control of a table, register or counter, without the controls within it.

    The back end puts statements outside tables into tables of its own, which it names after file and line.
    """
    block, _, rest = name.removesuffix("-gateway").partition(".")
    if not rest:
        return next((f"{file}.p4" for file in SOURCES if re.fullmatch(rf"tbl_{file}\d+", block)), STATEMENTS)
    control, _, inner = rest.partition(".")
    return f"{block}.{control}" if inner else block
