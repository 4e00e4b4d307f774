# SPDX-License-Identifier: Apache-2.0
"""Checks of the section ``samples``."""

from __future__ import annotations

from collections.abc import Iterator

from frontage.config.checks.findings import Finding, unknown_name
from frontage.config.schema import Config


def check(config: Config) -> Iterator[Finding]:
    """Yield the problems of samples."""
    if config.samples is None:
        return
    names = dict.fromkeys(port.name for own in config.switches for port in own.ports)
    for number, name in enumerate(config.samples.ports):
        if name not in names:
            yield unknown_name(("samples", "ports", number), "port", name, names, "`ports`")
