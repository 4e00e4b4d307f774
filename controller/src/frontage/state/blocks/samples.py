# SPDX-License-Identifier: Apache-2.0
"""``samples.p4``: the rates at which dropped packets are sampled, and the clone session that sends samples to the controller."""

from __future__ import annotations

from frontage.config.samples import Samples
from frontage.config.schema import Config
from frontage.limits import SAMPLE_SESSION
from frontage.p4 import reasons, replication
from frontage.p4.entries import Action, Key, State

REASON = "drop_samples.reason"
TABLES = (REASON,)


def entries(samples: Samples | None) -> State:
    """Return the entries; none without samples."""
    if samples is None or not samples.collectors or not samples.drops_per_second:
        return {}
    rate = samples.drops_per_second
    return {Key(REASON, (number,)): Action("report", meter=(rate, rate)) for number in reasons.drops()}


def session(config: Config) -> State:
    """Return the clone session; none without samples."""
    if config.samples is None:
        return {}
    return dict([replication.session(SAMPLE_SESSION, [(config.device.cpu_port, 1)])])
