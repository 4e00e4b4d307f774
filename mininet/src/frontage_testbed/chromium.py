# SPDX-License-Identifier: Apache-2.0
"""Chromium, driven by Playwright, for the console's tests and screenshots."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import BrowserContext, sync_playwright

PROGRAM = "/usr/bin/chromium"
_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def is_installed() -> bool:
    """Return whether Debian's Chromium is installed."""
    return shutil.which(PROGRAM) is not None


@contextmanager
def browser(width: int, height: int, *, dark: bool = False) -> Iterator[BrowserContext]:
    """Run a headless Chromium with a profile of its own, and a window of this size."""
    with tempfile.TemporaryDirectory() as profile, sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=PROGRAM,
            headless=True,
            args=list(_OPTIONS),
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
        )
        try:
            yield context
        finally:
            context.close()
