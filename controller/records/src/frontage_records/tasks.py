# SPDX-License-Identifier: Apache-2.0
"""The end of background tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable


async def finish(tasks: Iterable[asyncio.Task[None]], seconds: float) -> None:
    """Wait for tasks. Cancel those that exceed the timeout, and wait until they have ended."""
    waiting = set(tasks)
    if waiting:
        _, late = await asyncio.wait(waiting, timeout=seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
