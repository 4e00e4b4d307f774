# SPDX-License-Identifier: Apache-2.0
"""Run the benchmarks and write their results to build/bench.

`result.json` is a list of rows {name, value, unit, peer, peer_value, ratio}; `machine.json` describes the machine.
Each benchmark is a command that prints its rows as a JSON list. The last three fields of a row without a peer are null.
A peer program runs in the same benchmark, on the same machine and with the same input.
The ratio is our value divided by the peer's.

Example: bench/run.py --only pipeline
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

Row = dict[str, Any]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def _python(script: str, *arguments: str) -> list[str]:
    return [sys.executable, str(HERE / script), *arguments]


PRIVATE_NETWORK = ["unshare", "--net"]
PRIVATE_MOUNTS = [*PRIVATE_NETWORK, "--mount"]
BENCHMARKS: dict[str, list[str]] = {
    "pipeline": _python("pipeline.py"),
    "katran": _python("katran.py"),
    "threads": _python("threads.py"),
    "veth-frontage": PRIVATE_NETWORK + _python("veth.py", "frontage"),
    "veth-quic": PRIVATE_NETWORK + _python("veth.py", "quic"),
    "veth-router": PRIVATE_NETWORK + _python("veth.py", "router"),
    "veth-acl": PRIVATE_NETWORK + _python("veth.py", "acl"),
    "veth-two-ports": PRIVATE_NETWORK + _python("veth.py", "two-ports"),
    "tables": _python("tables.py"),
    "table-writes": _python("table_writes.py"),
    "write-delay": PRIVATE_NETWORK + _python("table_writes.py", "delay"),
    "growth": _python("growth.py"),
    "mapping": _python("mapping.py"),
    "api": _python("api.py"),
    "console": _python("console.py"),
    "health": PRIVATE_NETWORK + _python("health.py"),
    "placement": _python("placement.py"),
    "records": _python("records.py"),
    "quic-signals": PRIVATE_MOUNTS + _python("quic_signals.py"),
    "quic-nginx": PRIVATE_MOUNTS + _python("quic_nginx.py"),
    "quic-loss": PRIVATE_MOUNTS + _python("quic_loss.py"),
    "quic-lsquic": PRIVATE_MOUNTS + _python("quic_lsquic.py"),
    "qdsr": PRIVATE_MOUNTS + _python("qdsr.py"),
    "qdsr-cpu": PRIVATE_MOUNTS + _python("qdsr_cpu.py"),
    "quicsocks": PRIVATE_NETWORK + _python("quicsocks.py"),
    "table1": PRIVATE_MOUNTS + _python("table1.py"),
    "simulator": _python("simulator.py"),
    "dispatcher": [os.environ.get("FRONTAGE_BENCH", str(ROOT / "target" / "release" / "frontage-bench")), "dispatcher"],
    "ebpf": [os.environ.get("FRONTAGE_BENCH", str(ROOT / "target" / "release" / "frontage-bench")), "ebpf"],
}
NEED_ROOT = {
    "health",
    "veth-frontage",
    "veth-quic",
    "veth-router",
    "veth-acl",
    "veth-two-ports",
    "write-delay",
    "quic-signals",
    "quic-nginx",
    "quic-loss",
    "quic-lsquic",
    "qdsr",
    "qdsr-cpu",
    "quicsocks",
    "table1",
    "ebpf",
    "katran",
}


class BenchmarkError(Exception):
    """A failed benchmark; the message contains the cause and the remedy."""


def run(name: str) -> tuple[list[Row], str]:
    """Run a benchmark; return its rows and its output on standard error."""
    command = BENCHMARKS[name]
    if name in NEED_ROOT and os.geteuid() != 0:
        raise BenchmarkError("a network namespace or eBPF requires root: run it with sudo")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise BenchmarkError(f"{error.filename} is missing: run `make setup`") from None
    if done.returncode != 0:
        raise BenchmarkError(f"{done.stderr.strip()}\nCommand: {' '.join(command)}")
    try:
        rows: list[Row] = json.loads(done.stdout)
    except json.JSONDecodeError as error:
        raise BenchmarkError(f"`{' '.join(command)}` did not print rows: {error}\n{done.stdout}") from None
    return rows, done.stderr.strip()


def merge(path: Path, fresh: list[Row]) -> None:
    """Replace these rows in the results file, and keep all others."""
    names = {row["name"] for row in fresh}
    old: list[Row] = json.loads(path.read_text()) if path.exists() else []
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([row for row in old if row["name"] not in names] + fresh, indent=2) + "\n")


def describe_machine() -> dict[str, str]:
    """Return the properties of this machine on which the results depend."""
    cpu = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return {
        "cpu": cpu[1] if cpu else platform.machine(),
        "cores": str(os.cpu_count()),
        "memory": f"{memory:.0f} GiB",
        "load": f"{os.getloadavg()[0]:.1f}",
        "system": f"Linux {'.'.join(platform.release().split('.')[:2])}",
    }


def show(rows: list[Row], console: Console) -> None:
    table = Table("benchmark", "unit", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("value", "peer's", "ratio"):
        table.add_column(column, justify="right")
    table.add_column("peer")
    peers = list(dict.fromkeys(row["peer"] for row in rows if row["peer"]))
    for row in rows:
        value = f"{row['value']:,.{0 if abs(row['value']) >= 100 else 1}f}"
        numbers = [value, *("-" if row[key] is None else f"{row[key]:,.2f}" for key in ("peer_value", "ratio"))]
        table.add_row(row["name"], row["unit"], *numbers, f"({peers.index(row['peer']) + 1})" if row["peer"] else "-")
    console.print(table)
    for number, peer in enumerate(peers, 1):
        console.print(f"({number}) {peer}", highlight=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=BENCHMARKS, help="run only this benchmark")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench" / "result.json", help="file of the results")
    args = parser.parse_args()
    console = Console(stderr=True)
    chosen = [args.only] if args.only else list(BENCHMARKS)
    fresh: list[Row] = []
    failures = 0
    machine = describe_machine()
    with Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console) as progress:
        for number, name in enumerate(chosen, 1):
            task = progress.add_task(f"{number} of {len(chosen)}: {name}", total=1)
            try:
                rows, notes = run(name)
            except BenchmarkError as error:
                failures += 1
                progress.console.print(f"{name} failed: {error}", style="red", markup=False, highlight=False)
            else:
                fresh += rows
                merge(args.output, rows)
                if notes:
                    progress.console.print(f"{name}: {notes}", markup=False, highlight=False)
            progress.update(task, completed=1)
    if fresh:
        args.output.with_name("machine.json").write_text(json.dumps(machine, indent=2) + "\n")
        show(fresh, console)
        console.print(f"written to {args.output}")
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
