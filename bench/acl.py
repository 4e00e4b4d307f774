# SPDX-License-Identifier: Apache-2.0
"""Random rules of a packet filter from ``frontage-bench acl`` (``src/acl.rs``), encoded for a site's file and for P4Runtime."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from finsy.proto import p4r

from frontage.p4.p4info import TableInfo
from paths import program

SEED = 1
PACKETS = 1000


@dataclass(frozen=True)
class Rule:
    """A rule that forwards matching packets to a port and marks them with its class."""

    match: tuple[str, ...]
    """Hexadecimal match fields: ``value&mask`` or ``low-high``."""
    priority: int
    port: int
    class_id: int

    def to_json(self, table: TableInfo) -> dict[str, Any]:
        params = [f"{self.port:x}", f"{self.class_id:x}"]
        return {"table": table.full_name, "match": self.match, "priority": self.priority, "action": "permit", "params": params}

    def encode(self, table: TableInfo) -> p4r.TableEntry:
        entry = p4r.TableEntry(table_id=table.id, priority=self.priority)
        for field_id, width, text in zip(table.fields, table.widths, self.match, strict=True):
            if "&" in text:
                value, mask = (int(part, 16) for part in text.split("&"))
                if mask:
                    match = entry.match.add(field_id=field_id)
                    match.ternary.value, match.ternary.mask = _bytes(value), _bytes(mask)
            else:
                low, high = (int(part, 16) for part in text.split("-"))
                if (low, high) != (0, (1 << width) - 1):
                    match = entry.match.add(field_id=field_id)
                    match.range.low, match.range.high = _bytes(low), _bytes(high)
        action = table.actions["permit"]
        entry.action.action.action_id = action.id
        for param_id, value in zip(action.params, (self.port, self.class_id), strict=True):
            entry.action.action.params.add(param_id=param_id, value=_bytes(value))
        return entry


def draw(count: int, masks: str, port: int) -> tuple[list[Rule], list[dict[str, Any]]]:
    """Draw `count` rules whose masks are ``prefixes`` or ``random``; return them and packets with the rule that each must hit."""
    command: list[str | Path] = [program("FRONTAGE_BENCH", "frontage-bench"), "acl", masks, str(count), str(PACKETS), str(SEED)]
    drawn = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    rules = [Rule(tuple(entry["match"]), entry["priority"], port, entry["class"]) for entry in drawn["entries"]]
    return rules, drawn["packets"]


def _bytes(value: int) -> bytes:
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")
