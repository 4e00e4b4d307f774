# SPDX-License-Identifier: Apache-2.0
"""Rows of the results: {name, value, unit, peer, peer_value, ratio}."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeAlias, cast

from frontage.config import ConfigError
from frontage.p4.errors import SwitchError
from frontage.p4.p4info import PipelineError
from paths import program

Row: TypeAlias = dict[str, Any]

NO_PEER = "no BMv2 to compare with: install simple_switch_grpc on PATH, or set BMV2 to its path"


def row(name: str, value: float, unit: str, peer: str | None = None, peer_value: float | None = None) -> Row:
    """Return a row whose ratio is `value` divided by `peer_value`."""
    ratio = round(value / peer_value, 3) if peer_value else None
    rounded = None if peer_value is None else round(peer_value, 1)
    return {"name": name, "value": round(value, 1), "unit": unit, "peer": peer, "peer_value": rounded, "ratio": ratio}


def rates(*arguments: str) -> dict[str, float]:
    """Run ``frontage-bench`` and return the rates that it prints."""
    return cast(dict[str, float], output(*arguments))


def rates_of_each(*arguments: str) -> list[dict[str, float]]:
    """Run ``frontage-bench`` and return the rates of each thing that it measures."""
    return cast(list[dict[str, float]], output(*arguments))


def output(*arguments: str) -> Any:
    """Run ``frontage-bench`` and return what it prints."""
    done = subprocess.run([program("FRONTAGE_BENCH", "frontage-bench"), *arguments], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def finish(measure: Callable[[], list[Row]]) -> None:
    """Print the rows of a benchmark; exit with the error if it fails."""
    try:
        rows = measure()
    except (OSError, RuntimeError, subprocess.CalledProcessError, ConfigError, PipelineError, SwitchError) as error:
        sys.exit(str(error))
    json.dump(rows, sys.stdout, indent=2)
    print()
