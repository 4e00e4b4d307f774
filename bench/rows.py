"""Rows of the result: {name, value, unit, peer, peer_value, ratio}."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeAlias, cast

Row: TypeAlias = dict[str, Any]

NO_PEER = "BMv2 is not here to compare with: install simple_switch_grpc on PATH, or set SIMPLE_SWITCH_GRPC to it"


def row(name: str, value: float, unit: str, peer: str | None = None, peer_value: float | None = None) -> Row:
    """``ratio`` is ours by theirs."""
    ratio = round(value / peer_value, 3) if peer_value else None
    rounded = None if peer_value is None else round(peer_value, 1)
    return {"name": name, "value": round(value, 1), "unit": unit, "peer": peer, "peer_value": rounded, "ratio": ratio}


def rates(binary: Path, *arguments: str) -> dict[str, float]:
    """What ``frontage-bench`` prints."""
    done = subprocess.run([str(binary), *arguments], stdout=subprocess.PIPE, check=True)
    return cast(dict[str, float], json.loads(done.stdout))


def finish(rows: list[Row]) -> None:
    json.dump(rows, sys.stdout, indent=2)
    print()
