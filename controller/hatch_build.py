# SPDX-License-Identifier: Apache-2.0
"""Puts the built console into the wheel, if `make console` has built it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ConsoleHook(BuildHookInterface):
    """Adds `console/dist` as `frontage/console`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, except to an editable install, which finds them in the checkout."""
        files = Path(self.root).parent / "console" / "dist"
        if version != "editable" and (files / "index.html").is_file():
            build_data["force_include"][str(files)] = "frontage/console"
