# SPDX-License-Identifier: Apache-2.0
"""The command line of the Artemis demo."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .scenarios import SCENARIOS

METHODS = ("artemis", "dns", "anycast", "regional")

EXAMPLE = """\
Example:
  python -m frontage_demo.artemis --scenario global-large --rounds 5
"""


@dataclass(frozen=True)
class Settings:
    """Settings of one run."""

    scenarios: tuple[str, ...]
    rounds: int
    """Connections per client and method."""
    seed: int
    methods: tuple[str, ...]
    degrees: tuple[int, ...]
    """Degrees of redundancy, X, compared in the first scenario."""
    dispatched: bool
    """True if dispatchers read the service's name; otherwise the switch decides by its address."""
    tries: int
    """Connections with X = 1 and with X = 2 over lossy paths; 0 skips the experiments with loss and site failure."""
    output: Path
    """Folder of results and temporary files."""
    page: Path
    """Folder of `artemis.md`."""


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="frontage_demo.artemis",
        description="Measures Artemis, DNS, anycast and regional anycast over sites and clients at measured distances.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="one of the deployments; all by default")
    parser.add_argument("--rounds", type=int, default=20, help="connections per client and method (20)")
    parser.add_argument("--seed", type=int, default=1, help="seed of anycast's routes and of cached names (1)")
    parser.add_argument("--method", action="append", choices=METHODS, help="how clients find servers; all by default")
    parser.add_argument("--dispatched", action="store_true", help="have dispatchers read the service's name")
    parser.add_argument("--tries", type=int, default=200, help="connections for each X at 1 %% loss; 0 to skip (200)")
    parser.add_argument("--redundancy", type=int, default=4, help="largest X to compare in the first deployment (4)")
    parser.add_argument("--output", type=Path, default=Path("build/artemis"), help="folder of result.json (build/artemis)")
    parser.add_argument("--page", type=Path, help="folder of artemis.md and its figures (the same as --output)")
    given = parser.parse_args(arguments)
    if not 1 <= given.rounds <= 10_000:
        parser.error(f"--rounds {given.rounds} is out of range; use 1 to 10000")
    if not 0 <= given.tries <= 10_000:
        parser.error(f"--tries {given.tries} is out of range; use 0 to 10000")
    if not 1 <= given.redundancy <= 4:
        parser.error(f"--redundancy {given.redundancy} is out of range; use 1 to 4")
    return Settings(
        tuple(given.scenario or SCENARIOS),
        given.rounds,
        given.seed,
        tuple(given.method or METHODS),
        tuple(range(2, given.redundancy + 1)),
        given.dispatched,
        given.tries,
        given.output.absolute(),
        (given.page or given.output).absolute(),
    )
