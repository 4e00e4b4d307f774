# SPDX-License-Identifier: Apache-2.0
"""Command line of ``frontage-sim``, which runs the simulations of scenarios and makes the figures of papers from them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from frontage.config import ConfigError
from frontage_sim import plan_sweep
from frontage_sim import sweep as sweep_scenario
from frontage_sim.figures import page, scenarios
from frontage_sim.jobs import SimulationError
from frontage_sim.paths import REPOSITORY
from frontage_sim.results import Results

app = typer.Typer(help=__doc__, no_args_is_help=True, rich_markup_mode=None, add_completion=False)

ScenarioFile = Annotated[Path, typer.Argument(help="YAML file of the scenario", show_default=False)]
Full = Annotated[bool, typer.Option("--full", help="run at the published scale: hours instead of minutes")]
Workers = Annotated[int | None, typer.Option(min=1, help="number of parallel simulations (one per core)", show_default=False)]
Cluster = Annotated[
    str | None,
    typer.Option(help="address of a Dask scheduler, such as tcp://10.0.0.1:8786, whose workers simulate", show_default=False),
]


@app.command(epilog="Example: frontage-sim sweep experiments/cloudcookie/figure8.yaml --workers 2")
def sweep(
    scenario: ScenarioFile,
    out: Annotated[
        Path | None, typer.Option(help="folder of the results (default: build/experiments/NAME)", show_default=False)
    ] = None,
    workers: Workers = None,
    cluster: Cluster = None,
    full: Full = False,
) -> None:
    """Run all simulations of a scenario that have not finished yet, and write all flows to one Parquet file."""
    results = sweep_scenario(scenario, out, full=full, workers=workers, cluster=cluster)
    print(f"{results.table().height:,} {results.plan.table}, {_core_hours(results.core_seconds())}")


@app.command(name="list", epilog="Example: frontage-sim list experiments/cloudcookie/figure8.yaml")
def list_runs(scenario: ScenarioFile, full: Full = False) -> None:
    """List the simulations of a scenario, one per line."""
    for name in plan_sweep(scenario, full).labels:
        print(name)


@app.command(name="figures", epilog="Example: frontage-sim figures cloudcookie")
def figures(
    papers: Annotated[
        list[str] | None, typer.Argument(help="folders in experiments/ (default: all with a README)", show_default=False)
    ] = None,
    workers: Workers = None,
    cluster: Cluster = None,
    full: Full = False,
) -> None:
    """Sweep the scenarios of papers, and write their pages and plots to docs/results/."""
    folder = REPOSITORY / "experiments"
    known = sorted(file.parent.name for file in folder.glob("*/README.md") if scenarios(file.parent))
    core_seconds: dict[str, float] = {}

    def run(file: Path) -> Results:
        results = sweep_scenario(file, full=full, workers=workers, cluster=cluster)
        core_seconds.update(results.core_seconds())
        return results

    for paper in papers or known:
        if paper not in known:
            raise typer.BadParameter(f'unknown folder "{paper}": use one of ' + ", ".join(known))
        print(page(folder / paper, REPOSITORY / "docs" / "results", run))
    print(_core_hours(core_seconds))


def _core_hours(core_seconds: dict[str, float]) -> str:
    return f"{sum(core_seconds.values()) / 3600:,.3f} core hours"


def main() -> None:
    try:
        app()
    except (ConfigError, SimulationError, FileNotFoundError) as error:
        sys.exit(f"frontage-sim: {error}")


if __name__ == "__main__":
    main()
