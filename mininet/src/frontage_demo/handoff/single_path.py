# SPDX-License-Identifier: Apache-2.0
"""Measures downloads to clients with a single path, without and with losses."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import downloads
from .early import TOPOLOGIES
from .testbed import FORMS, ONE_PATH, PROXY, Ground, Testbed
from .topology import delays

RATE, QUEUE = 100, 1000
"""Mbit/s and packets of the links towards the client."""
SIZE, DOWNLOADS = 20_000_000, 3
"""Bytes of the object, and number of downloads by each form."""
OWDS = {"1, 1, 1": (1, 1, 1)} | {f"{name}: {', '.join(map(str, owd))}": owd for name, owd in TOPOLOGIES.items()}
LOSSES = (0.01, 0.03)
LOSSY = tuple(f"{owd} ms" for owd in (10, 30, 60))
"""Names of the topologies with losses."""
LOSSY_SIZE, CONNECTIONS, SECONDS, TURNS = 1_000_000, 16, 15, 2
"""Bytes of the objects, concurrent connections, seconds of a measurement, and measurements by each form where packets are lost.

Many connections average over many losses, and the link is not full.
"""
HANDOFF_FIELDS = 'single_path = "delegate"\n'
"""The balancer does not proxy where that is faster."""


@dataclass
class SinglePath:
    """Rates in Mbit/s by topology and form."""

    rates: dict[str, dict[str, float]] = field(default_factory=dict)
    """Without losses."""
    lossy: dict[str, dict[str, float]] = field(default_factory=dict)
    """By topology and loss rate."""


def measure(ground: Ground, seed: int) -> SinglePath:
    """Measure all topologies. Raises NodeError if a download is incomplete."""
    result = SinglePath()
    limits = f"rate={RATE}mbit,queue-packets={QUEUE}"
    for name, owd in OWDS.items():
        with ground.testbed(delays(owd, limits), seed, handoff=HANDOFF_FIELDS) as testbed:
            result.rates[name] = downloads.rates(testbed, (*FORMS, ONE_PATH), SIZE, DOWNLOADS)
    for name in LOSSY:
        for loss in LOSSES:
            links = delays(TOPOLOGIES[name], f"{limits},loss={loss}")
            with ground.testbed(links, seed, handoff=HANDOFF_FIELDS) as testbed:
                result.lossy[f"{name}, {100 * loss:g} %"] = _concurrent(testbed)
    return result


def _concurrent(testbed: Testbed) -> dict[str, float]:
    """Return the rate of all connections together by each form; the forms take turns."""
    rates = dict.fromkeys((PROXY, ONE_PATH), 0.0)
    for turn in range(TURNS):
        for form in rates if turn % 2 else reversed(rates):
            report = testbed.load(form, LOSSY_SIZE, f"--connections={CONNECTIONS}", "--parallel=1", f"--seconds={SECONDS}")
            rates[form] += 8e-6 * report["bytes"] / report["seconds"] / TURNS
    return rates
