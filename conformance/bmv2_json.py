# SPDX-License-Identifier: Apache-2.0
"""A compiled program's headers, parser, constants and checksums, from BMv2 JSON, for the packet generator."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Ref = tuple[str, str]
"""Names of header and field."""


class CompiledProgram:
    def __init__(self, file: Path):
        self.json: dict[str, Any] = json.loads(file.read_text())
        types = {kind["name"]: kind for kind in self.json["header_types"]}
        self.headers: dict[str, list[tuple[str, int]]] = {}
        """Fields and widths by header; a varbit field has width 0."""
        for header in self.json["headers"]:
            fields = types[header["header_type"]]["fields"]
            self.headers[header["name"]] = [(field[0], 0 if field[1] == "*" else int(field[1])) for field in fields]
        by_id = {header["id"]: header["name"] for header in self.json["headers"]}
        self.stacks = {stack["name"]: [by_id[i] for i in stack["header_ids"]] for stack in self.json["header_stacks"]}
        unions = {union["id"]: union["name"] for union in self.json.get("header_unions", [])}
        for stack in self.json.get("header_union_stacks", []):
            self.stacks[stack["name"]] = [unions[i] for i in stack["header_union_ids"]]
        parser = self.json["parsers"][0]
        self.start: str = parser["init_state"]
        self.states: dict[str, dict[str, Any]] = {state["name"]: state for state in parser["parse_states"]}
        self.constants = sorted({int(value, 16) for value in _constants(self.json) if int(value, 16) >= 0})
        """All numbers in the program."""
        self.compared: dict[Ref, set[int]] = defaultdict(set)
        """Numbers with which the program compares a field."""
        for ref, value in _comparisons(self.json):
            self.compared[ref].add(value)
        self.calculations = {calculation["name"]: calculation for calculation in self.json["calculations"]}

    def key_fields(self, table: str) -> list[Ref | None]:
        """Return the fields of a table's key, in order; None for a key that is not a plain field."""
        for pipeline in self.json["pipelines"]:
            for found in pipeline["tables"]:
                if found["name"] == table:
                    targets = [key["target"] for key in found["key"]]
                    return [(target[0], target[1]) if isinstance(target, list) else None for target in targets]
        return []

    def tables(self) -> set[str]:
        """Return the names of the tables. P4Info may have more: p4c removes unreachable ones after it has written P4Info."""
        return {table["name"] for pipeline in self.json["pipelines"] for table in pipeline["tables"]}

    def clone_sessions(self) -> set[int]:
        """Return constants that may be clone session ids: P4Runtime's ids start at 1, and BMv2's end at 32767."""
        return {value for value in self.constants if 0 < value < 1024}

    def verified(self) -> list[tuple[Ref, dict[str, Any]]]:
        """Return the checksum fields that the program verifies, with their calculations."""
        verified = [checksum for checksum in self.json["checksums"] if checksum.get("verify")]
        return [((c["target"][0], c["target"][1]), self.calculations[c["calculation"]]) for c in verified]


def _constants(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if node.get("type") == "hexstr" and isinstance(node.get("value"), str):
            yield node["value"]
        for child in node.values():
            yield from _constants(child)
    elif isinstance(node, list):
        for child in node:
            yield from _constants(child)


def _comparisons(node: Any) -> Iterator[tuple[Ref, int]]:
    if isinstance(node, dict):
        left, right = node.get("left"), node.get("right")
        if (
            node.get("op") in ("==", "!=", "<", "<=", ">", ">=")
            and left
            and right
            and left["type"] == "field"
            and right["type"] == "hexstr"
        ):
            yield (left["value"][0], left["value"][1]), int(right["value"], 16)
        for child in node.values():
            yield from _comparisons(child)
    elif isinstance(node, list):
        for child in node:
            yield from _comparisons(child)


def evaluate(node: Any, fields: dict[Ref, int]) -> int | None:
    """Return an expression over fields of the packet; None if it contains anything else."""
    if node is None:
        return None
    kind, value = node["type"], node["value"]
    if kind == "hexstr":
        return int(value, 16)
    if kind == "field":
        return fields.get((value[0], value[1]))
    if kind != "expression":
        return None
    if "op" not in value:
        return evaluate(value, fields)
    right = evaluate(value["right"], fields)
    left = evaluate(value["left"], fields) if value["left"] is not None else 0
    if left is None or right is None:
        return None
    match value["op"]:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "&":
            return left & right
        case "|":
            return left | right
        case "<<":
            return left << min(right, 64)
        case ">>":
            return left >> right
        case _:
            return None
