# SPDX-License-Identifier: Apache-2.0
"""Rules of a packet filter, as ``frontage-bench acl`` draws them (``src/acl.rs``): for a site's file, and over P4Runtime."""

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
    """Permits packets by a port, and gives them a class."""

    match: tuple[str, ...]
    """``value&mask`` or ``low-high``, hexadecimal."""
    priority: int
    port: int
    number: int

    def plain(self, table: TableInfo) -> dict[str, Any]:
        params = [f"{self.port:x}", f"{self.number:x}"]
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
        for param_id, value in zip(action.params, (self.port, self.number), strict=True):
            entry.action.action.params.add(param_id=param_id, value=_bytes(value))
        return entry


def draw(count: int, masks: str, port: int) -> tuple[list[Rule], list[dict[str, Any]]]:
    """So many rules, with masks that are ``prefixes`` or ``random``, and packets with the rule that each must hit."""
    command: list[str | Path] = [program("FRONTAGE_BENCH", "frontage-bench"), "acl", masks, str(count), str(PACKETS), str(SEED)]
    drawn = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    rules = [Rule(tuple(entry["match"]), entry["priority"], port, entry["class"]) for entry in drawn["entries"]]
    return rules, drawn["packets"]


def _bytes(value: int) -> bytes:
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")
