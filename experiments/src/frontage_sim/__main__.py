# SPDX-License-Identifier: Apache-2.0
"""Command line of ``frontage-sim``, which runs the simulations of scenarios and makes the figures of papers from them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from frontage.config import ConfigError
from frontage_sim import REPOSITORY, simulate
from frontage_sim.auspice.scenario import is_auspice_scenario, split
from frontage_sim.auspice.scenario import load as load_auspice
from frontage_sim.figures import page, scenarios
from frontage_sim.grid import runs
from frontage_sim.runner import SimulationError
from frontage_sim.scenario import load

app = typer.Typer(help=__doc__, no_args_is_help=True, rich_markup_mode=None, add_completion=False)

ScenarioFile = Annotated[Path, typer.Argument(help="YAML file of the scenario", show_default=False)]
Full = Annotated[bool, typer.Option("--full", help="run at the published scale: hours instead of minutes")]


@app.command(epilog="Example: frontage-sim run experiments/cloudcookie/figure8.yaml --workers 2")
def run(
    scenario: ScenarioFile,
    out: Annotated[
        Path | None, typer.Option(help="folder of the results (default: build/experiments/NAME)", show_default=False)
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="number of parallel simulations (one per core)", show_default=False)
    ] = None,
    full: Full = False,
) -> None:
    """Run all simulations of a scenario that have not finished yet, and write all flows to one Parquet file."""
    rows = simulate(scenario, out, full=full, workers=workers)
    print(f"{rows.height:,} {'rows' if is_auspice_scenario(scenario) else 'flows'}")


@app.command(name="list", epilog="Example: frontage-sim list experiments/cloudcookie/figure8.yaml")
def list_runs(scenario: ScenarioFile, full: Full = False) -> None:
    """List the simulations of a scenario, one per line."""
    if is_auspice_scenario(scenario):
        for part in split(load_auspice(scenario, full)):
            print(part.model_dump_json(exclude_unset=True, exclude={"full"}))
        return
    for single in runs(load(scenario), scenario, full):
        print(single.name)


@app.command(name="figures", epilog="Example: frontage-sim figures cloudcookie")
def figures(
    papers: Annotated[
        list[str] | None, typer.Argument(help="folders in experiments/ (default: all with a README)", show_default=False)
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="number of parallel simulations (one per core)", show_default=False)
    ] = None,
    full: Full = False,
) -> None:
    """Run the scenarios of papers, and write their pages and plots to docs/results/."""
    folder = REPOSITORY / "experiments"
    known = sorted(file.parent.name for file in folder.glob("*/README.md") if scenarios(file.parent))
    for paper in papers or known:
        if paper not in known:
            raise typer.BadParameter(f'unknown folder "{paper}": use one of ' + ", ".join(known))
        print(
            page(
                folder / paper,
                REPOSITORY / "docs" / "results",
                lambda file, table: simulate(file, full=full, workers=workers, table=table),
            )
        )


def main() -> None:
    try:
        app()
    except (ConfigError, SimulationError, FileNotFoundError) as error:
        sys.exit(f"frontage-sim: {error}")


if __name__ == "__main__":
    main()
