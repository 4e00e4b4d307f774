# SPDX-License-Identifier: Apache-2.0
"""The console that the demos print to."""

from __future__ import annotations

from rich.console import Console

LOG_WIDTH = 120
"""Columns when the output goes to a file or pipe."""


def make_console() -> Console:
    """Return a console with the terminal's width, or `LOG_WIDTH` without a terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=LOG_WIDTH)
