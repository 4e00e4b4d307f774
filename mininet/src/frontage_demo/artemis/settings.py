"""What the user may set."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .scenarios import SCENARIOS

WAYS = ("artemis", "dns", "anycast")

EXAMPLE = """\
Example:
  python -m frontage_demo.artemis --scenario global-large --rounds 5
"""


@dataclass(frozen=True)
class Settings:
    """One run."""

    scenarios: tuple[str, ...]
    rounds: int
    """Connections of each client by each way."""
    seed: int
    ways: tuple[str, ...]
    degrees: tuple[int, ...]
    """Degrees of redundancy, X, that are compared in the first scenario."""
    dispatched: bool
    """Whether dispatchers read the service's name; else its address decides, in the switch."""
    tries: int
    """Connections with X = 1 and with X = 2 over paths that lose packets; 0 leaves out the loss and the
    deaths of sites."""
    output: Path
    """Folder of the numbers and of everything temporary."""
    page: Path
    """Folder of `artemis.md`."""


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="frontage_demo.artemis",
        description="Artemis, DNS and anycast over sites and clients whose distances are measured ones.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="one of the deployments; all by default")
    parser.add_argument("--rounds", type=int, default=20, help="connections of each client by each way (20)")
    parser.add_argument("--seed", type=int, default=1, help="of anycast's routes and of the names that are cached (1)")
    parser.add_argument("--way", action="append", choices=WAYS, help="how servers are found; all by default")
    parser.add_argument("--dispatched", action="store_true", help="have dispatchers read the service's name")
    parser.add_argument("--tries", type=int, default=200, help="connections for each X at 1 %% loss; 0: none (200)")
    parser.add_argument("--redundancy", type=int, default=4, help="largest X to compare in the first deployment (4)")
    parser.add_argument("--output", type=Path, default=Path("build/artemis"), help="folder of result.json (build/artemis)")
    parser.add_argument("--page", type=Path, help="folder of artemis.md and its figures; --output if not given")
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
        tuple(given.way or WAYS),
        tuple(range(2, given.redundancy + 1)),
        given.dispatched,
        given.tries,
        given.output.absolute(),
        (given.page or given.output).absolute(),
    )
