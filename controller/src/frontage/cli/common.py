# SPDX-License-Identifier: Apache-2.0
"""Options and output shared by all commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from frontage.config import Config, ConfigError, load
from frontage.naming import canonical_name

out = Console()
err = Console(stderr=True)

ConfigArgument = Annotated[Path, typer.Argument(metavar="CONFIG", help="The configuration file.")]
ConfigOption = Annotated[
    Path, typer.Option("--config", "-c", metavar="CONFIG", envvar="FRONTAGE_CONFIG", help="The configuration file.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DEFAULT_CONFIG = Path("frontage.yaml")


def fail(message: object, *, as_json: bool = False, code: int = 1, request_id: str | None = None) -> NoReturn:
    """Print an error and exit. ``request_id`` identifies the request in the controller's log."""
    if as_json:
        known = {} if request_id is None else {"request_id": request_id}
        out.print_json(json.dumps({"ok": False, "error": str(message), **known}))
    else:
        if request_id is not None:
            message = f"{message} (request {request_id})"
        err.print(f"error: {message}", style="red", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(code)


def service_name(text: str | None) -> str | None:
    """Return the name of a service as the configuration has it, for use as callback of an argument."""
    try:
        return None if text is None else canonical_name(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def example(text: str) -> str:
    """Return the example at the end of a command's help."""
    return f"[dim]Example:[/dim] {text}"


def load_config(config: Path, *, as_json: bool) -> Config:
    """Load a configuration, or print its errors and exit."""
    try:
        return load(config)
    except ConfigError as error:
        fail(error, as_json=as_json)
