# SPDX-License-Identifier: Apache-2.0
"""Measures the first byte of new connections: after a full handshake, and of early data (0-RTT)."""

from __future__ import annotations

from frontage_testbed.nodes import NodeError

from .testbed import FORMS, HANDOFF, ONE_PATH, Ground, Testbed
from .topology import OWDS, delays

ROUNDS, SIZE = 25, 1_000
"""Number of rounds, and bytes of the object. In each round, a client visits the balancer of each form twice."""
FULL, EARLY = "full handshake", "0-RTT"
KINDS = (FULL, EARLY)
"""Kinds of a client's first and second visit."""
TOPOLOGIES = {f"{owd} ms": (owd, 1, owd) for owd in (10, 30, 60)} | OWDS

FirstBytes = dict[str, dict[str, list[float]]]
"""Times in ms from a client's first packet to the first byte of the response, by kind (`KINDS`) and form (`FORMS`)."""


def measure(ground: Ground, seed: int) -> dict[str, FirstBytes]:
    """Return the times by topology. Raises NodeError if a response is not of the expected kind."""
    result = {}
    for name, owd in TOPOLOGIES.items():
        with ground.testbed(delays(owd), seed, fields="early_data = true\n") as testbed:
            result[name] = _first_bytes(testbed)
    return result


def _first_bytes(testbed: Testbed) -> FirstBytes:
    times: FirstBytes = {kind: {form: [] for form in FORMS} for kind in KINDS}
    before = testbed.kept()
    for turn in range(ROUNDS):
        for form in FORMS if turn % 2 else reversed(FORMS):
            visits = testbed.get(ONE_PATH if form == HANDOFF else form, [SIZE] * len(KINDS), "--early-data")
            if [visit.get("early_data") for visit in visits] != [None, True]:
                raise NodeError(f"{form}: the balancer refused early data: {visits}")
            for kind, visit in zip(KINDS, visits, strict=True):
                times[kind][form].append(1000 * visit["seconds"]["first_byte"])
    if kept := testbed.kept() - before:
        raise NodeError(f"the balancer answered {kept} of {len(KINDS) * ROUNDS} requests itself")
    return times
