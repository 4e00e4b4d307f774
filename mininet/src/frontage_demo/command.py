# SPDX-License-Identifier: Apache-2.0
"""Common parts of the commands that bring up a testbed, measure, and write a page."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from frontage_testbed import sandbox
from frontage_testbed.datacentre.deployment import Deployment, DeploymentError, find
from frontage_testbed.datacentre.settings import Settings
from frontage_testbed.nodes import NodeError
from frontage_testbed.programs import REPOSITORY

P = TypeVar("P")


def parser(module: str, description: str, output: str, what: str, page: str) -> argparse.ArgumentParser:
    """Return the parser of the command `python -m frontage_demo.MODULE`.

    The command writes `what` into build/`output`, and results/`page` below the documentation.
    """
    build = REPOSITORY / "build"
    arguments = argparse.ArgumentParser(
        prog=f"frontage_demo.{module}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    release = REPOSITORY / "target" / "release"
    arguments.add_argument("--programs", type=Path, default=release, help="folder of our programs")
    arguments.add_argument("--output", type=Path, default=build / output, help=f"folder for {what}")
    arguments.add_argument("--docs", type=Path, help=f"also write results/{page} below this folder")
    return arguments


def count(text: str) -> int:
    """Return the number of repetitions that an argument names, for argparse."""
    number = int(text)
    if not 1 <= number <= 10_000:
        raise argparse.ArgumentTypeError("must be from 1 to 10000")
    return number


def deployment(settings: Settings) -> Deployment:
    """Return the programs and files of a data centre. Raises NodeError if one is missing."""
    try:
        return find(settings)
    except DeploymentError as error:
        raise NodeError(str(error)) from None


def play(name: str, output: Path, find: Callable[[], P], run: Callable[[sandbox.Sandbox, P], int]) -> int:
    """Run `run` in a sandbox, with the programs that `find` returns, and return the exit status.

    The status is 2 if the programs or the sandbox are not available. It is 1 if the testbed failed; its logs are then in
    `output`. Error messages begin with `name`.
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


def in_sandbox(name: str, body: Callable[[sandbox.Sandbox], None], directory: Path) -> None:
    """Run `body` in its own namespaces. Raises NodeError if it failed; error messages begin with `name`.

    A process can enter a sandbox only once, so `body` runs in a child.
    """

    def kept(box: sandbox.Sandbox) -> int:
        try:
            body(box)
        except BaseException:
            keep_logs(name, box, directory)
            raise
        return 0

    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = sandbox.run(kept, directory)
        except sandbox.SandboxError as error:
            print(f"frontage {name}: {error}", file=sys.stderr)
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise NodeError("a testbed failed: see the messages above")


def keep_logs(name: str, box: sandbox.Sandbox, output: Path) -> None:
    """Copy the logs of a testbed's processes to `output`, and print where they are."""
    box.keep_logs(output / "logs")
    print(f"frontage {name}: logs are in {output / 'logs'}", file=sys.stderr)
