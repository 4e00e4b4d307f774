"""Where the demos print."""

from __future__ import annotations

from rich.console import Console

LOG_WIDTH = 120
"""Columns of a table when the output goes to a file or pipe."""


def make_console() -> Console:
    """Of the terminal's width, if it is one."""
    console = Console()
    return console if console.is_terminal else Console(width=LOG_WIDTH)
