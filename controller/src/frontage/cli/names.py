# SPDX-License-Identifier: Apache-2.0
"""Names of the configuration, for completion in a shell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from frontage.config.document import DocumentError, parse


def complete_vips(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names of VIPs that begin with ``incomplete``."""
    return list(_names(context, "vips", incomplete))


def complete_servers(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names of servers that begin with ``incomplete``."""
    return list(_names(context, "servers", incomplete))


def complete_devices(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names of switches that begin with ``incomplete``."""
    return list(_names(context, "devices", incomplete))


def _names(context: typer.Context, section: str, incomplete: str) -> Iterator[str]:
    file: Any = context.params.get("config") or "frontage.yaml"
    try:
        data: Any = parse(Path(file).read_text(encoding="utf-8")).data
    except (OSError, UnicodeDecodeError, DocumentError):
        return
    items = data.get(section) if isinstance(data, dict) else None
    for item in items if isinstance(items, list) else []:
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(name, str) and name.startswith(incomplete):
            yield name
