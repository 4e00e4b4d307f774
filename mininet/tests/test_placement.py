# SPDX-License-Identifier: Apache-2.0
"""Moving demand, end to end: switches count it, and placement and steering follow."""

from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from frontage_demo.artemis.newcomer import newcomer
from frontage_demo.artemis.programs import find
from frontage_demo.artemis.shift import FROM, NEW, PLACEMENT, SHIFT, TO, shift
from frontage_demo.artemis.site import Programs
from frontage_demo.artemis.testbed import ArtemisTestbed
from frontage_testbed.datacentre.deployment import DeploymentError
from frontage_testbed.sandbox import Sandbox
from testbeds import Sandboxed, needs_root

EPOCHS = 2
"""Epochs within which placement must follow (Auspice, section 2.2.4)."""


def programs() -> Programs:
    try:
        return find()
    except DeploymentError as error:
        pytest.skip(str(error))


def moved(box: Sandbox, made_of: Programs) -> dict[str, Any]:
    with ArtemisTestbed(SHIFT, made_of, box.scratch / "testbed", seed=1, placement=PLACEMENT) as testbed:
        seen = {"newcomer": asdict(newcomer(testbed, NEW))} | asdict(shift(testbed))
        rtt = testbed.latencies.rtt(SHIFT.clients[TO], SHIFT.clients[FROM])
    return {name: sorted(value) if isinstance(value, frozenset) else value for name, value in seen.items()} | {"rtt": rtt}


@needs_root
@pytest.mark.slow(seconds=75)
def test_service_follows_demand_without_failed_request(tmp_path: Path) -> None:
    made_of = programs()
    seen = Sandboxed(lambda box: moved(box, made_of), tmp_path).result()
    # Only the switch reported the new client, which never had an answer; all measurements are pings.
    new = seen["newcomer"]
    assert new["seen"]
    assert [(rtt["site"], rtt["source"]) for rtt in new["rtts"]] == [(site, "active") for site in (1, 2, 3)]
    assert min(new["rtts"], key=lambda rtt: rtt["milliseconds"])["site"] == 2
    assert new["region"] > 0
    assert (seen["before"], seen["after"]) == ([1], [2])
    # These are the controller's epochs, which are long on a slow machine.
    steps = [seen[step] for step in ("shown", "decided", "active")]
    assert steps == sorted(steps) and steps[0] >= 1 and steps[-1] <= EPOCHS, steps
    # No measurement is below its distance, and the new site is nearer.
    assert min(seen["far"]) >= seen["rtt"]
    assert median(seen["near"]) < seen["rtt"] < median(seen["far"])
