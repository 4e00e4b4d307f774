"""What the commands have in common that bring a world up, measure, and write a page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from . import sandbox
from .nodes import NodeError

P = TypeVar("P")
REPOSITORY = Path(__file__).resolve().parents[3]


def parser(module: str, description: str, output: str, what: str, page: str) -> argparse.ArgumentParser:
    """Of the command `python -m frontage_demo.MODULE`, which leaves `what` in build/`output`, and results/`page` below
    the documentation.
    """
    build = REPOSITORY / "build"
    found = argparse.ArgumentParser(
        prog=f"frontage_demo.{module}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    release = REPOSITORY / "target" / "release"
    found.add_argument("--programs", type=Path, default=release, help="where our programs are")
    found.add_argument("--output", type=Path, default=build / output, help=f"where {what} goes")
    found.add_argument("--docs", type=Path, help=f"write results/{page} below this folder, too")
    return found


def play(name: str, output: Path, find: Callable[[], P], run: Callable[[sandbox.Sandbox, P], int]) -> int:
    """Run this in a sandbox, with the programs that `find` returns, and return its exit status: 2 where a world cannot
    be had here, 1 where one failed, whose logs are then in `output`. `name` begins what is said of errors.
    """

    def body(box: sandbox.Sandbox) -> int:
        try:
            return run(box, programs)
        except NodeError as error:
            print(f"frontage {name}: {error}", file=sys.stderr)
            keep_logs(name, box, output)
            return 1

    try:
        programs = find()
        return sandbox.run(body, output.resolve())
    except (NodeError, sandbox.SandboxError) as error:
        print(f"frontage {name}: {error}", file=sys.stderr)
        return 2


def keep_logs(name: str, box: sandbox.Sandbox, output: Path) -> None:
    """Keep what a world's processes have said, and say where."""
    box.keep_logs(output / "logs")
    print(f"frontage {name}: logs are in {output / 'logs'}", file=sys.stderr)
