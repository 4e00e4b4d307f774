# SPDX-License-Identifier: Apache-2.0
"""Downloads by each form, and checks that real servers answered them."""

from __future__ import annotations

import time
from collections.abc import Iterable

from frontage_testbed.nodes import NodeError

from .testbed import HANDOFF, ONE_PATH, Testbed

SMALL = 1_000
"""Bytes of an object that precedes each measured one on its connection."""


def check(testbed: Testbed, form: str, before: int, requests: int) -> None:
    """Raise NodeError unless real servers answered the requests of a delegating form."""
    deadline = time.monotonic() + 5
    while form in (HANDOFF, ONE_PATH) and testbed.handed() - before < requests:
        if time.monotonic() > deadline:
            raise NodeError(f"real servers answered {testbed.handed() - before} of {requests} requests")
        time.sleep(0.05)


def rates(testbed: Testbed, forms: Iterable[str], size: int, count: int) -> dict[str, float]:
    """Return the rate in Mbit/s of `count` downloads by each form, which take turns.

    Each download follows another one on its connection, so the time contains no handshake.
    """
    seconds: dict[str, float] = dict.fromkeys(forms, 0.0)
    for _ in range(count):
        for form in seconds:
            before = testbed.handed()
            seconds[form] += testbed.get(form, [SMALL, size])[-1]["seconds"]["total"]
            check(testbed, form, before, 1)
    return {form: 8e-6 * size * count / whole for form, whole in seconds.items()}
