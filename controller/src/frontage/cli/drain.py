# SPDX-License-Identifier: Apache-2.0
"""Waiting for the traffic of a switch to end."""

from __future__ import annotations

import time

from frontage.cli.common import err
from frontage.cli.request import Requests

POLL_INTERVAL = 1.0
"""Seconds between readings of the switch's counters."""
IDLE_POLLS = 2
"""Readings without a new packet after which a switch counts as idle."""


def wait_until_idle(requests: Requests, name: str, seconds: float) -> bool:
    """Return whether the switch was idle within ``seconds``."""
    deadline = time.monotonic() + seconds
    last, unchanged = None, 0
    with err.status(f"waiting for the traffic of {name} to end") as line:
        while unchanged < IDLE_POLLS:
            if time.monotonic() > deadline:
                return False
            devices = requests.send("GET", "/status")["devices"]
            packets = next((device["packets_to_vips"] for device in devices if device["name"] == name), None)
            # None while the switch cannot be read. Such a switch gets no traffic either, because its routes are withdrawn.
            unchanged = unchanged + 1 if packets == last else 0
            if last is not None and packets is not None:
                line.update(f"waiting for the traffic of {name} to end: {(packets - last) / POLL_INTERVAL:.0f} packets/s")
            last = packets
            time.sleep(POLL_INTERVAL)
    return True
