"""Runs the benchmarks and writes build/bench/result.json: a list of {name, value, unit, peer, peer_value, ratio}.

Each benchmark is a command of the room that it measures and prints such rows as a JSON list on standard output; a row
without a peer has null there. Example: tools/bench.py --only pipeline
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

BIN = "target/release"
PROGRAM = "build/p4/frontage.json"
BENCHMARKS: dict[str, list[str]] = {
    "pipeline": [f"{BIN}/pipeline-bench", PROGRAM],
    "veth": [sys.executable, "softswitch/switch/bench/veth.py"],
    "table-writes": [sys.executable, "softswitch/switch/bench/table_writes.py"],
    "ebpf": [f"{BIN}/frontage-cclb7", "bench", "--json"],
}

Row = dict[str, Any]


def run(name: str, command: list[str], console: Console) -> list[Row]:
    with console.status(f"{name}: {' '.join(command)}"):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        console.print(f"[red]{name} failed[/]: {' '.join(command)}\n{done.stderr}")
        raise SystemExit(1)
    rows: list[Row] = json.loads(done.stdout)
    return [{"peer": None, "peer_value": None, "ratio": None, **row} for row in rows]


def show(rows: list[Row], console: Console) -> None:
    table = Table("benchmark", "value", "unit", "peer", "peer's value", "ratio")
    for row in rows:
        peer = [str(row[key]) if row[key] is not None else "-" for key in ("peer", "peer_value", "ratio")]
        table.add_row(row["name"], f"{row['value']:,.1f}", row["unit"], *peer)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=BENCHMARKS, help="run this one")
    parser.add_argument("--output", type=Path, default=Path("build/bench/result.json"))
    args = parser.parse_args()
    console = Console(stderr=True)
    chosen = [args.only] if args.only else list(BENCHMARKS)
    fresh = [row for name in chosen for row in run(name, BENCHMARKS[name], console)]

    # `--only` renews its own rows and keeps the others.
    names = {row["name"] for row in fresh}
    kept = (
        [row for row in json.loads(args.output.read_text()) if row["name"] not in names]
        if args.only and args.output.exists()
        else []
    )
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(json.dumps(kept + fresh, indent=2) + "\n")
    show(fresh, console)
    console.print(f"written to {args.output}")


if __name__ == "__main__":
    main()
