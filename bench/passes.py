# SPDX-License-Identifier: Apache-2.0
"""Print the further passes of packets through the programs for Tofino: recirculations, worker packets, resubmissions, digests.

The result is JSON: for each workload and number of pipes, the counts by kind of packet. `make tofino` reads it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frontage.config import ConfigError
from frontage.p4.p4info import PipelineError
from frontage.state.errors import ReconcileError
from paths import program
from sites import chip

PIPES = (1, 2, 4)


@dataclass(frozen=True)
class Workload:
    """Traffic of a site, and the profile that carries it."""

    title: str
    profile: str
    protocol: str
    scheduler: dict[str, Any] | None = None


def aifo(report_every: int) -> dict[str, Any]:
    return {"kind": "aifo", "capacity": 1000, "report_every": report_every}


WORKLOADS = (
    Workload("TCP", "tofino1", "tcp"),
    Workload("QUIC", "tofino2", "quic"),
    Workload("TCP, AIFO", "tofino2", "tcp", aifo(1)),
    Workload("TCP, AIFO, 1 report of 16 departures", "tofino2", "tcp", aifo(16)),
)


def count(workload: Workload, pipes: int) -> dict[str, Any]:
    """Return the counts of a workload by kind of packet."""
    site = chip(f"{workload.profile}-{workload.protocol}", workload.profile, workload.protocol, pipes, workload.scheduler)
    command: list[str | Path] = [program("FRONTAGE_BENCH", "frontage-bench"), "passes", site.write()]
    kinds = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return {"workload": workload.title, "profile": workload.profile, "pipes": pipes, "kinds": kinds}


def main() -> None:
    try:
        counts = [count(workload, pipes) for workload in WORKLOADS for pipes in PIPES]
    except (OSError, subprocess.CalledProcessError, ConfigError, PipelineError, ReconcileError) as error:
        sys.exit(f"bench/passes.py: {error}")
    json.dump(counts, sys.stdout)


if __name__ == "__main__":
    main()
